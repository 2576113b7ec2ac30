#!/bin/bash
# man.sh - pages are clean for mandoc, every option of a page is in --help with its default, and the other way round.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${BUILD:-build}/bin
bad=0
not_ok() { echo "not ok - $*"; bad=$((bad + 1)); }

if command -v mandoc >/dev/null; then
	for page in man/*.[1-9]; do
		# What a page refers to need not be installed here.
		out=$(mandoc -T lint -W warning "$page" 2>&1 | grep -v 'referenced manual not found')
		if [ -z "$out" ]; then echo "ok - $page is clean"; else not_ok "$page: $out"; fi
	done
else
	echo "skip - mandoc: not installed"
fi

# options PAGE COMMAND: "name default" of the options of a command ("" for the daemon itself).
options() {
	awk -v want="$2" '/^\.\\" command: / { command = $3 } /^\.\\" opt: / && command == want { $1 = $2 = $4 = ""; print }' "$1"
}
# flags: the flags that a --help text lists.
flags() { sed -n 's/^      --\([a-z0-9-]*\).*/\1/p' | grep -vx -e help -e version | sort; }

for page in man/*-lite.8; do
	daemon=$(basename "$page" .8)
	if [ ! -x "$bin/$daemon" ]; then
		echo "skip - $daemon --help: not built"
		continue
	fi
	for command in "" $(sed -n 's/^\.\\" command: //p' "$page" | sort -u); do
		# shellcheck disable=SC2086
		help=$("$bin/$daemon" $command --help 2>&1)
		in_page=$(options "$page" "$command" | awk '{ print $1 }' | sort)
		in_help=$(printf '%s\n' "$help" | flags)
		if [ -n "$in_page" ] && [ "$in_page" = "$in_help" ]; then
			echo "ok - $daemon ${command:+$command }--help and page list the same $(echo "$in_page" | wc -l) options"
		else
			not_ok "$daemon $command --help and page differ: $(diff <(echo "$in_page") <(echo "$in_help") | grep '^[<>]' | tr '\n' ' ')"
		fi
		text=$(printf '%s\n' "$help" | tr -s ' \n' ' ')
		missing=
		while read -r name default; do
			case $default in - | false | "") continue ;; esac
			case $text in *"--$name "*"(default $default)"* | *"--$name "*"(default \"$default\")"* | *"--$name "*"(default [$default])"*) ;; *) missing="$missing $name" ;; esac
		done < <(options "$page" "$command")
		[ -z "$missing" ] || not_ok "$daemon $command --help does not show the default of:$missing"
	done
done
[ $bad -eq 0 ]

# lib-image.sh - an image store, registries and helpers for tests of images. Source it; at exit everything goes away.
# shellcheck shell=bash
BUILD=${BUILD:-$PWD/build}
dir=$(mktemp -d /tmp/image-test.XXXXXX)
# In memory: what is tested is order and content, and a shared disk makes each sync a second. (User attributes: kernel 6.6.)
mount -t tmpfs -o size=3g,mode=755 none "$dir"
python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.test", b"1"); os.removexattr(sys.argv[1], "user.test")' "$dir" 2>/dev/null || umount "$dir"
store=$dir/store
registry_pids=()
cleanup() {
	for pid in "${registry_pids[@]:-}"; do [ -z "$pid" ] || kill "$pid" 2>/dev/null; done
	umount -l "$dir/small" "$dir/merged" "$dir" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; }
check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$dir/check.log" 2>&1; then ok "$name"; else
		not_ok "$name"
		tail -n 20 "$dir/check.log"
	fi
}
is() { # NAME WANTED COMMAND...
	local name=$1 wanted=$2 got
	shift 2
	got=$("$@" 2>&1)
	if [ "$got" = "$wanted" ]; then ok "$name"; else
		not_ok "$name"
		printf 'wanted: %s\ngot: %s\n' "$wanted" "$got"
	fi
}
has() { # NAME WANTED COMMAND...: it succeeds and its output holds this
	local name=$1 wanted=$2 got code
	shift 2
	got=$("$@" 2>&1)
	code=$?
	case $got in *"$wanted"*) [ $code = 0 ] && ok "$name" && return ;; esac
	not_ok "$name"
	printf 'wanted: %s\ngot (%s): %s\n' "$wanted" "$code" "$got"
}
fails() { # NAME TEXT COMMAND...: it fails and says this
	local name=$1 wanted=$2 got
	shift 2
	if got=$("$@" 2>&1); then
		not_ok "$name: it did not fail"
		return
	fi
	case $got in *"$wanted"*) ok "$name" ;; *)
		not_ok "$name"
		printf 'wanted: %s\ngot: %s\n' "$wanted" "$got"
		;;
	esac
}
not() { ! "$@"; }
until_true() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	while [ $SECONDS -le $end ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	"$@"
}
has_child() { [ -n "$(pgrep -P "$1")" ]; }

# The store from a shell: built on demand when the script is run by hand.
tool_find() {
	tool_program=$BUILD/tests/unit/runtime-lite/image/store_tool
	libexec=${LIBEXEC:-$BUILD/libexec/runtime-lite}
	[ -n "${STORE_TOOL:-}" ] && tool_program=$STORE_TOOL
	[ -x "$tool_program" ] || make -s "${tool_program#"$PWD"/}" >&2
	[ -x "$tool_program" ] && [ -x "$libexec/pull" ] || { not_ok "store_tool or pull is not built"; exit 1; }
}
tool() { "$tool_program" "$store" "$libexec" --stall 1000 "$@"; }
pull() { tool pull "$1"; }
pull_with() { # [FLAG VALUE]... REF: flags of the tool
	"$tool_program" "$store" "$libexec" --stall 1000 "${@:1:$#-1}" pull "${!#}"
}
pull_alone() { # the same as one process, for the background
	exec "$tool_program" "$store" "$libexec" --stall 60000 "${@:1:$#-1}" pull "${!#}"
}
load() { tool load "$@"; }
fresh() { rm -rf "$store"; store=$dir/store; rm -rf "$store"; }
count() { ls "$store/$1" | wc -l; }

# Starts a registry; its address is 127.0.0.1:$port, its faults are set by fault NAME QUERY.
declare -A ports=()
registry() { # NAME ARGUMENT...
	local name=$1
	shift
	rm -f "$dir/port.$name"
	python3 "$fakes/registry.py" --port-file "$dir/port.$name" "$@" >"$dir/registry.$name.log" 2>&1 &
	registry_pids+=($!)
	until_true 10 test -s "$dir/port.$name"
	port=$(cat "$dir/port.$name")
	ports[$name]=$port
}
fault() { curl -s -X POST "http://127.0.0.1:${ports[$1]}/fault?$2" >/dev/null; }

# Nothing half-made in the store, no image recorded without all of its parts; the collection of unnamed layers is the
# daemon's, so layers are looked at after one.
clean_after() {
	local left
	tool list >/dev/null 2>&1
	left=$(ls "$store/staging" "$store/locks" 2>/dev/null | grep -v '^$\|:$')
	if [ -z "$left" ]; then ok "nothing is left after $1"; else
		not_ok "nothing is left after $1"
		echo "$left"
	fi
}
# The configuration's digest of a tag in a layout.
config_of() { # LAYOUT TAG
	python3 - "$1" "$2" <<-'END'
		import json, sys
		layout, tag = sys.argv[1:]
		index = json.load(open(layout + "/index.json"))
		d = [d for d in index["manifests"] if d["annotations"]["org.opencontainers.image.ref.name"] == tag][0]
		print(json.load(open(layout + "/blobs/sha256/" + d["digest"][7:]))["config"]["digest"])
	END
}
# The digest of its layer number N.
layer_of() { # LAYOUT TAG N
	python3 - "$@" <<-'END'
		import json, sys
		layout, tag, n = sys.argv[1:]
		index = json.load(open(layout + "/index.json"))
		d = [d for d in index["manifests"] if d["annotations"]["org.opencontainers.image.ref.name"] == tag][0]
		print(json.load(open(layout + "/blobs/sha256/" + d["digest"][7:]))["layers"][int(n)]["digest"])
	END
}
# How often configurations were fetched, by the log of the registry "one".
config_fetches() {
	curl -s "http://127.0.0.1:${ports[one]}/log" | grep -cE "$(config_of "$layout" 1)|$(config_of "$layout" plain)"
}
# The image's layers, bottom first, hold exactly what is in these directories.
same_tree() { # REF DIR...
	local ref=$1 i=0 lower
	shift
	tool acquire "$ref" test-container >"$dir/lower" || return 1
	tool release test-container
	tac "$dir/lower" >"$dir/lower.up"
	while read -r lower; do
		i=$((i + 1))
		diff <(python3 "$fakes/tree.py" "$lower" --no-times) <(python3 "$fakes/tree.py" "${!i}" --no-times) || return 1
	done <"$dir/lower.up"
	[ $i = $# ]
}

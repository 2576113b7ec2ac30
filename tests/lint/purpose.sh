#!/bin/bash
# purpose.sh - every source file begins by saying its name and what it is for; shell scripts too, and they parse.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0

files=0
while read -r file; do
	name=$(basename "$file")
	files=$((files + 1))
	if ! head -n 2 "$file" | grep -qE "^(/\*| \*) $(printf '%s' "$name" | sed 's/[.]/\\./g') - purpose: .+"; then
		echo "# $file: no line \"$name - purpose: ...\" at the top"
		bad=$((bad + 1))
	fi
done < <(find common runtime-lite kubelet-lite proxy-lite tests -name '*.[ch]' -not -path 'tests/conformance/*' | sort)
[ $bad -eq 0 ] && echo "ok - $files sources say their purpose" || echo "not ok - $bad of $files sources do not say their purpose"

broken=0 scripts=0
while read -r file; do
	scripts=$((scripts + 1))
	bash -n "$file" || broken=$((broken + 1))
done < <(find tests packaging .ci -type f \( -name '*.sh' -o -path '.ci/*' -o -name '*.postinst' -o -name '*.prerm' -o -name '*.postrm' \) | sort)
[ $broken -eq 0 ] && echo "ok - $scripts scripts parse" || echo "not ok - $broken of $scripts scripts do not parse"
[ $bad -eq 0 ] && [ $broken -eq 0 ]

#!/bin/bash
# length.sh - no source file over 1000 lines (over 600 is worth a thought), no function over 100 (over 60 is named).
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0

while read -r lines file; do
	[ "$file" = total ] && continue
	if [ "$lines" -gt 1000 ]; then
		echo "not ok - $file has $lines lines (at most 1000)"
		bad=$((bad + 1))
	elif [ "$lines" -gt 600 ]; then
		echo "# $file has $lines lines"
	fi
done < <(find common runtime-lite kubelet-lite proxy-lite tests packaging \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.awk' \) -print0 | xargs -0 wc -l | sort -rn)
[ $bad -eq 0 ] && echo "ok - no file has more than 1000 lines"

# A function begins with a "{" in column one (or ends a line of one) and ends with a "}" in column one.
long=$(find common runtime-lite kubelet-lite proxy-lite -name '*.c' -print0 | xargs -0 awk '
	FNR == 1 { inside = 0; name = "" }
	/^[A-Za-z_].*\(/ && !/;$/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
	/^\{/ { inside = 1; start = FNR; next }
	/^\}/ { if (inside && FNR - start - 1 > 60) print FNR - start - 1, FILENAME ":" name; inside = 0 }' | sort -rn)
[ -z "$long" ] || echo "$long" | sed 's/^/# lines, function: /'
worst=$(echo "$long" | awk '$1 > 100 { n++ } END { print n + 0 }')
if [ "$worst" -eq 0 ]; then
	echo "ok - no function has more than 100 lines"
else
	echo "not ok - $worst functions have more than 100 lines"
	bad=$((bad + 1))
fi
[ $bad -eq 0 ]

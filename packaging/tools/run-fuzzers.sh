#!/bin/sh
# run-fuzzers.sh BUILD-DIR SECONDS NAME... - run each libFuzzer harness for a while; ends with "N passed, N failed".
set -u
build=$1 seconds=$2; shift 2
passed=0 failed=0
for name in "$@"; do
	seeds=tests/fuzz/corpus/${name%_fuzz}
	found=$build/corpus/$name
	mkdir -p "$found"
	[ -d "$seeds" ] || seeds=
	# shellcheck disable=SC2086
	if "$build/tests/fuzz/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
		-artifact_prefix="$build/corpus/$name-" "$found" $seeds >"$build/corpus/$name.log" 2>&1; then
		passed=$((passed + 1))
		echo "ok - $name: $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$build/corpus/$name.log" | tail -n 1) runs in $seconds s"
	else
		failed=$((failed + 1))
		echo "not ok - $name"
		tail -n 40 "$build/corpus/$name.log" | sed 's/^/    /'
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

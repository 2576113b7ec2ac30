#!/bin/sh
# run-tests.sh BUILD-DIR SUITE... - run unit tests (check), lint and integration scripts; ends with "N passed, N failed".
# An integration or lint script prints "ok - name", "not ok - name" or "skip - name: why" for each case.
set -u
build=$1; shift
passed=0 failed=0 skipped=0
export BUILD="$PWD/$build"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

unit() {
	for test in $(find "$build/tests/unit" -name '*_test' -type f | sort); do
		timeout 300 "$test" >"$log" 2>&1
		code=$?
		line=$(grep -E '^[0-9]+%: Checks: ' "$log" | tail -n 1)
		checks=$(echo "$line" | sed -n 's/.*Checks: \([0-9]*\).*/\1/p')
		bad=$(echo "$line" | sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1+\2/p')
		checks=${checks:-0} bad=$((${bad:-0}))
		if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
		good=$((checks - bad)); [ "$good" -lt 0 ] && good=0
		passed=$((passed + good)) failed=$((failed + bad))
		echo "unit ${test#"$build"/tests/unit/}: $good passed, $bad failed"
		[ "$bad" -eq 0 ] || sed 's/^/    /' "$log"
	done
}

scripts() {
	for script in "tests/$1"/*.sh; do
		[ -f "$script" ] || continue
		case ${script##*/} in lib*.sh) continue ;; esac
		[ -z "${ONLY:-}" ] || case $script in *$ONLY*) ;; *) continue ;; esac
		echo "== $script"
		timeout "${TEST_TIMEOUT:-600}" bash "$script" >"$log" 2>&1
		code=$?
		grep -E '^(ok|not ok|skip) - ' "$log"
		good=$(grep -c '^ok - ' "$log"); bad=$(grep -c '^not ok - ' "$log")
		skipped=$((skipped + $(grep -c '^skip - ' "$log")))
		if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
			bad=1
			echo "not ok - $script ended with code $code"
		fi
		[ "$bad" -eq 0 ] || tail -n 150 "$log" | sed 's/^/    /'
		passed=$((passed + good)) failed=$((failed + bad))
	done
}

for suite in "$@"; do
	case $suite in
	unit) unit ;;
	*) scripts "$suite" ;;
	esac
done
[ "$skipped" -eq 0 ] || echo "$skipped skipped (the reason stands beside each)"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

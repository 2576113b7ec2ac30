#!/bin/sh
# run-tests.sh BUILD-DIR SUITE... - run unit tests (check), lint and integration scripts; ends with "N passed, N failed".
# ONLY=text runs the scripts whose names contain it. RETRIES=n runs a script or unit test that failed again, up to n times,
# and says so: on a loaded machine time-outs of traffic tests are not yet a verdict. The default is 0.
# An integration or lint script prints "ok - name", "not ok - name" or "skip - name: why" for each case.
set -u
build=$1; shift
passed=0 failed=0 skipped=0 failures=
export BUILD="$PWD/$build"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run_unit TEST: sets good and bad, leaves the output in $log.
run_unit() {
	timeout 300 "$1" >"$log" 2>&1
	code=$?
	line=$(grep -E '^[0-9]+%: Checks: ' "$log" | tail -n 1)
	checks=$(echo "$line" | sed -n 's/.*Checks: \([0-9]*\).*/\1/p')
	bad=$(echo "$line" | sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1+\2/p')
	checks=${checks:-0} bad=$((${bad:-0}))
	if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
	good=$((checks - bad)); [ "$good" -lt 0 ] && good=0
	return 0
}

run_script() {
	timeout "${TEST_TIMEOUT:-600}" bash "$1" >"$log" 2>&1
	code=$?
	good=$(grep -c '^ok - ' "$log"); bad=$(grep -c '^not ok - ' "$log")
	if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
		echo "not ok - $1 ended with code $code" >>"$log"
	fi
	return 0
}

# run RUNNER TEST: once, and again while it fails and RETRIES are left; adds to the totals.
run() {
	left=${RETRIES:-0}
	start=$(date +%s)
	"$1" "$2"
	while [ "$bad" -gt 0 ] && [ "$left" -gt 0 ]; do
		left=$((left - 1))
		echo "note: $2 failed ($bad), and is run again:"
		grep -E '^not ok - |:[FE]:' "$log" | sed 's/^/    /'
		"$1" "$2"
	done
	passed=$((passed + good)) failed=$((failed + bad))
	[ "$bad" -eq 0 ] || failures="$failures ${2#"$build"/}"
	took=$(($(date +%s) - start))
}

unit() {
	for test in $(find "$build/tests/unit" -name '*_test' -type f | sort); do
		run run_unit "$test"
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
		run run_script "$script"
		grep -E '^(ok|not ok|skip) - ' "$log"
		skipped=$((skipped + $(grep -c '^skip - ' "$log")))
		[ "$bad" -eq 0 ] || tail -n 150 "$log" | sed 's/^/    /'
		echo "== $script: $good passed, $bad failed, $took s"
	done
}

for suite in "$@"; do
	case $suite in
	unit) unit ;;
	*) scripts "$suite" ;;
	esac
done
[ "$skipped" -eq 0 ] || echo "$skipped skipped (the reason stands beside each)"
[ -z "$failures" ] || echo "failures in:$failures"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

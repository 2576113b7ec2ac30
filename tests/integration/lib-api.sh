# lib-api.sh - kubelet-lite's API alone: no runtime behind it, a directory and a network namespace of its own.
# shellcheck shell=bash
BUILD=${BUILD:-$PWD/build}
api_dir=$(mktemp -d /tmp/api-test.XXXXXX)
socket=$api_dir/api.sock
manifests=$api_dir/manifests
api_pid=

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; }
# check NAME COMMAND...: one case.
check() {
	local name=$1
	shift
	if "$@" >"$api_dir/check.log" 2>&1; then ok "$name"; else
		not_ok "$name"
		tail -n 20 "$api_dir/check.log"
	fi
}
# same NAME WANT GOT
same() { if [ "$2" = "$3" ]; then ok "$1"; else
	not_ok "$1"
	printf '    want %s\n    got  %s\n' "$2" "$3"
fi; }
until_true() {
	local end=$((SECONDS + $1))
	shift
	while [ $SECONDS -le $end ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	"$@"
}
# call METHOD PATH [CURL ARGUMENTS]: prints the body.
call() { curl -s --max-time 20 --unix-socket "$socket" -X "$1" "http://localhost$2" "${@:3}"; }
get() { call GET "$@"; }
# code METHOD PATH [...]: prints status and reason.
code() { call "$@" -w '\n%{http_code}' | { read -r body; read -r status; echo "$status $(echo "$body" | jq -r '.reason // empty' 2>/dev/null)"; }; }
patch() { call PATCH "$1" -H "Content-Type: application/$2-patch+json" -d "$3"; }
api_args() {
	echo --pod-manifest-path="$manifests" --root-dir="$api_dir/root" --container-runtime-endpoint="unix://$api_dir/no.sock" \
		--pod-logs-dir="$api_dir/logs" --container-logs-dir="$api_dir/links" --api-socket="$socket" --healthz-port=0 \
		--hostname-override=node1 --node-ip=192.0.2.1 --cgroups-per-qos=false
}
api_start() {
	mkdir -p "$manifests"
	# shellcheck disable=SC2046
	unshare -n "$BUILD/bin/kubelet-lite" $(api_args) "$@" >>"$api_dir/log" 2>&1 &
	api_pid=$!
	until_true 10 get /healthz
	nsenter --net="/proc/$api_pid/ns/net" ip link set lo up
}
api_kill() { # api_kill SIGNAL
	kill "-$1" "$api_pid" 2>/dev/null
	wait "$api_pid" 2>/dev/null
	api_pid=
}
api_cleanup() {
	[ -n "$api_pid" ] && api_kill TERM
	rm -rf "$api_dir"
}
trap api_cleanup EXIT

# lib-runtime.sh - a runtime-lite of its own for a test: directories, network namespace, cgroup parent, busybox image.
# Source it, call runtime_start; at exit everything is taken down.
# shellcheck shell=bash
BUILD=${BUILD:-$PWD/build}
rt_dir=$(mktemp -d /tmp/runtime-lite-test.XXXXXX)
rt_name=rlt${rt_dir##*.}
rt_socket=$rt_dir/rt.sock
rt_pid=
net_pid=
extra_pids=()

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; }
# check NAME COMMAND...: one case.
check() {
	local name=$1
	shift
	if "$@" >"$rt_dir/check.log" 2>&1; then ok "$name"; else
		not_ok "$name"
		tail -n 20 "$rt_dir/check.log"
	fi
}
# is NAME WANTED COMMAND...: the command prints this.
is() {
	local name=$1 wanted=$2 got
	shift 2
	got=$("$@" 2>&1)
	if [ "$got" = "$wanted" ]; then ok "$name"; else
		not_ok "$name"
		printf 'wanted: %s\ngot: %s\n' "$wanted" "$got"
	fi
}
# has NAME WANTED COMMAND...: its output holds this.
has() {
	local name=$1 wanted=$2 got
	shift 2
	got=$("$@" 2>&1)
	case $got in *"$wanted"*) ok "$name" ;; *)
		not_ok "$name"
		printf 'wanted: %s\ngot: %s\n' "$wanted" "$got"
		;;
	esac
}
# fails NAME TEXT COMMAND...: the command fails and its message holds the text.
fails() {
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
# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	while [ $SECONDS -le $end ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	"$@"
}
in_net() { nsenter --net="/proc/$net_pid/ns/net" "$@"; }
rl() { "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" "$@"; }
# field PATH CONTAINER: of its status, by jq.
field() { rl inspect "$2" | jq -r "$1"; }
pod_field() { rl inspectp "$2" | jq -r "$1"; }
state() { field .status.state "$1"; }
pod_state() { pod_field .status.state "$1"; }
exited() { [ "$(state "$1")" = CONTAINER_EXITED ]; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

daemon_start() { # [flags]
	nsenter --net="/proc/$net_pid/ns/net" setsid "$BUILD/bin/runtime-lite" --root="$rt_dir/lib" --state="$rt_dir/run" --listen="unix://$rt_socket" \
		--cgroup-parent="/$rt_name" --pod-cidr=10.88.0.0/16 "$@" >>"$rt_dir/daemon.log" 2>&1 </dev/null &
	rt_pid=$!
	until_true 20 rl version
}
daemon_stop() { # [signal]
	kill "-${1:-TERM}" "$rt_pid" 2>/dev/null
	wait "$rt_pid" 2>/dev/null
	rt_pid=
}
image_load() {
	packaging/tools/make-busybox-image.sh --name local/busybox:1 "$rt_dir/busybox.tar" && rl load "$rt_dir/busybox.tar"
}
runtime_start() { # [flags]
	unshare -n sleep 100000 &
	net_pid=$!
	until_true 5 test "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$net_pid/ns/net)"
	sleep 0.1
	in_net ip link set lo up
	daemon_start "$@" && image_load >"$rt_dir/load.log" 2>&1 || {
		cat "$rt_dir/daemon.log" "$rt_dir/load.log"
		not_ok "the daemon starts and takes an image"
		exit 1
	}
}

# pod NAME [JSON]: writes $rt_dir/NAME.pod; the JSON object is laid over the plain one.
pod() {
	jq -n --arg name "$1" --arg dir "$rt_dir/logs/$1" --argjson more "${2:-{\}}" '
		{metadata: {name: $name, namespace: "test", uid: ("uid-" + $name), attempt: 0}, hostname: $name, log_directory: $dir,
		 linux: {security_context: {namespace_options: {pid: "CONTAINER"}}}} * $more' >"$rt_dir/$1.pod"
}
# container NAME JSON COMMAND...: writes $rt_dir/NAME.con.
container() {
	local name=$1 more=$2
	shift 2
	jq -n --arg name "$name" --argjson more "$more" '
		{metadata: {name: $name}, image: {image: "local/busybox:1"}, log_path: ($name + ".log"), command: $ARGS.positional,
		 linux: {security_context: {namespace_options: {pid: "CONTAINER"}}}} * $more' --args -- "$@" >"$rt_dir/$name.con"
}
# run POD NAME JSON COMMAND...: a container in a pod that is there, started.
run() {
	local pod=$1 name=$2
	shift
	container "$@"
	rl create "$pod" "$rt_dir/$name.con" "$rt_dir/$pod.pod" && rl start "$name"
}
new_pod() { pod "$@" && rl runp "$rt_dir/$1.pod"; }
no_pods() { [ -z "$(rl pods --quiet)" ]; }

# What is left of this test's pods in the kernel and on disk; prints nothing when all is well.
leftovers() {
	pgrep -af "$rt_dir" | grep -v "$BUILD/bin/runtime-lite" | grep -v "$0"
	grep -F "$rt_dir" /proc/mounts
	find /sys/fs/cgroup -path "*/$rt_name/*" -type d 2>/dev/null | grep -v '/monitors$'
	in_net ip -o link | grep -vE ': (lo|node0):'
	in_net nft -j list ruleset 2>/dev/null | jq -r '.nftables[] | (.set // .map // empty) | select(.elem) | "\(.name): \(.elem)"'
	find "$rt_dir/run/sandboxes" "$rt_dir/lib/containers" "$rt_dir/lib/refs" "$rt_dir/lib/staging" -mindepth 1 2>/dev/null
	find "$rt_dir/lib/network" -mindepth 1 -type f 2>/dev/null | grep -vE '/(last|config.json)$'
}
nothing_left() {
	local rests=
	for _ in $(seq 40); do
		rests=$(leftovers)
		[ -z "$rests" ] && return 0
		sleep 0.1
	done
	echo "$rests"
	return 1
}
runtime_stop() {
	local hierarchy
	trap - EXIT
	[ ${#extra_pids[@]} -eq 0 ] || kill "${extra_pids[@]}" 2>/dev/null
	if [ -n "$rt_pid" ]; then
		rl rmp --all --force >/dev/null 2>&1
		daemon_stop
	fi
	if [ -n "$net_pid" ]; then
		in_net "$BUILD/bin/runtime-lite" --root="$rt_dir/lib" --cgroup-parent="/$rt_name" prune --network >/dev/null 2>&1
		kill "$net_pid" 2>/dev/null
		wait "$net_pid" 2>/dev/null
	fi
	for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
		[ -d "$hierarchy/$rt_name" ] && find "$hierarchy/$rt_name" -depth -type d -exec rmdir {} + 2>/dev/null
	done
	grep -F "$rt_dir" /proc/mounts | cut -d' ' -f2 | sort -r | xargs -r -n 1 umount -l
	[ -n "${KEEP:-}" ] || rm -rf "$rt_dir"
}
trap runtime_stop EXIT
trap 'exit 1' INT TERM

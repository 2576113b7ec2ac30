# lib-node.sh - a whole node for a test: the three daemons in a network namespace and directories of their own.
# Source it, call node_start; node_stop (also run at exit) takes everything down and leak_check says what is left.
# shellcheck shell=bash
BUILD=${BUILD:-$PWD/build}
node_dir=$(mktemp -d /tmp/node-lite-test.XXXXXX)
node_name=nlt${node_dir##*.}
api_socket=$node_dir/kubelet.sock
cri_socket=$node_dir/runtime.sock
declare -A node_pid=()
net_pid=

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; }
# check NAME COMMAND...: one case.
check() {
	local name=$1
	shift
	if "$@" >"$node_dir/check.log" 2>&1; then ok "$name"; else
		not_ok "$name"
		tail -n 20 "$node_dir/check.log"
		return 1
	fi
}
# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	while [ $SECONDS -le $end ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	"$@"
}
in_net() { nsenter --net="/proc/$net_pid/ns/net" "$@"; }
get() { curl -sf --max-time 10 --unix-socket "$api_socket" "http://localhost$1"; }
crictl_lite() { "$BUILD/bin/runtime-lite" --listen="unix://$cri_socket" "$@"; }
pods() { get /api/v1/namespaces/default/pods; }
pod_field() { get "/api/v1/namespaces/default/pods/$1" | jq -r "$2"; }
pod_ready() { [ "$(pod_field "$1" 'any(.status.conditions[]?; .type == "Ready" and .status == "True")')" = true ]; }
pod_absent() { ! get "/api/v1/namespaces/default/pods/$1" >/dev/null; }
no_pods() { [ "$(pods | jq '.items | length')" = 0 ]; }
no_sandboxes() { [ -z "$(crictl_lite pods --quiet)" ]; }
service_ip() { get "/api/v1/namespaces/default/services/$1" | jq -r .spec.clusterIP; }
page() { in_net curl -sf --max-time 3 "http://$1/"; }
apply() { cat >"$node_dir/manifests/.$1.new" && mv "$node_dir/manifests/.$1.new" "$node_dir/manifests/$1"; }

net_start() {
	unshare -n sleep 100000 &
	net_pid=$!
	until_true 5 test "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$net_pid/ns/net)"
	sleep 0.1
	in_net ip link set lo up
	in_net ip link add uplink0 type veth peer name uplink1
	in_net ip addr add 192.0.2.10/24 dev uplink0
	in_net ip link set uplink0 up
	in_net ip link set uplink1 up
	in_net ip route add default via 192.0.2.1
}

# Each daemon is started by a plain command in the background, not by a shell function: its pid is then the daemon's own
# (nsenter and setsid exec), and signals reach it.
start_runtime() {
	nsenter --net="/proc/$net_pid/ns/net" setsid "$BUILD/bin/runtime-lite" --root="$node_dir/lib" --state="$node_dir/run" --listen="unix://$cri_socket" \
		--cgroup-parent="/$node_name" --bridge="$node_name" --pod-cidr=10.87.0.0/16 "$@" \
		>>"$node_dir/runtime.log" 2>&1 </dev/null &
	node_pid[runtime]=$!
}
start_kubelet() {
	nsenter --net="/proc/$net_pid/ns/net" setsid "$BUILD/bin/kubelet-lite" --pod-manifest-path="$node_dir/manifests" --root-dir="$node_dir/kubelet" \
		--container-runtime-endpoint="unix://$cri_socket" --pod-logs-dir="$node_dir/logs" \
		--container-logs-dir="$node_dir/links" --cgroup-root="/$node_name" --api-socket="$api_socket" \
		--service-cluster-ip-range=10.97.0.0/16 --healthz-port=20248 "$@" >>"$node_dir/kubelet.log" 2>&1 </dev/null &
	node_pid[kubelet]=$!
}
start_proxy() {
	nsenter --net="/proc/$net_pid/ns/net" setsid "$BUILD/bin/proxy-lite" --api-socket="unix://$api_socket" --table="$node_name" \
		--admin-socket="$node_dir/proxy.sock" --healthz-bind-address=127.0.0.1:20256 \
		--metrics-bind-address=127.0.0.1:20249 --cluster-cidr=10.87.0.0/16 "$@" >>"$node_dir/proxy.log" 2>&1 </dev/null &
	node_pid[proxy]=$!
}
kill_daemon() { # kill_daemon NAME SIGNAL
	kill "-$2" "${node_pid[$1]}" 2>/dev/null
	wait "${node_pid[$1]}" 2>/dev/null
	# A test of restarts in which nothing ends would be worth nothing.
	! kill -0 "${node_pid[$1]}" 2>/dev/null || not_ok "SIG$2 ends $1"
}
load_image() {
	packaging/tools/make-demo-image.sh "$node_dir/web.tar" && crictl_lite load "$node_dir/web.tar"
}
node_start() {
	mount -t tmpfs -o size=512m,mode=0700 node-lite-test "$node_dir" || exit 1
	mkdir -p "$node_dir"/{manifests,lib,run,kubelet,logs,links}
	net_start
	start_runtime
	until_true 10 test -S "$cri_socket" || { not_ok "runtime-lite starts"; cat "$node_dir/runtime.log"; exit 1; }
	start_kubelet
	until_true 10 get /api/v1/namespaces || { not_ok "kubelet-lite starts"; cat "$node_dir/kubelet.log"; exit 1; }
	start_proxy
	load_image >/dev/null || { not_ok "the test image loads"; exit 1; }
}
show_logs() { tail -n 40 "$node_dir"/*.log; }
# What is left of this node; prints nothing when it is clean. The bridge and the tables live in the network namespace.
leftovers() {
	pgrep -af "$node_dir" | grep -vE "^($$|$BASHPID) "
	grep -F "$node_dir/" /proc/mounts
	find /sys/fs/cgroup -maxdepth 3 -type d -path "*/$node_name/*" ! -name monitors 2>/dev/null
	in_net ip -o link | grep -E "veth|$node_name@?" | grep -v "$node_name:"
	return 0
}
node_stop() {
	[ -n "$net_pid" ] || return
	rm -f "$node_dir"/manifests/*
	[ -n "${node_pid[kubelet]:-}" ] && until_true 30 no_sandboxes
	crictl_lite rmp --all --force >/dev/null 2>&1
	for d in kubelet proxy runtime; do
		[ -n "${node_pid[$d]:-}" ] || continue
		kill_daemon $d TERM
	done
	find /sys/fs/cgroup -maxdepth 3 -depth -type d -path "*/$node_name*" -exec rmdir {} + 2>/dev/null
	kill "$net_pid" 2>/dev/null
	wait "$net_pid" 2>/dev/null
	net_pid=
	umount "$node_dir" 2>/dev/null || umount -l "$node_dir" 2>/dev/null
	rmdir "$node_dir" 2>/dev/null
}
trap node_stop EXIT

#!/bin/bash
# run.sh BUILD-DIR - measure ours and the peers on this machine, alternating in one run; writes BUILD-DIR/bench.tsv with
# the columns metric, ours, peer, ratio (ours divided by the peer's; "-" where there is no peer).
# Peers: containerd and runc from Debian's packages; kube-proxy built as a Go tool (left out when there is no Go).
set -u
build=${1:-build}
export BUILD=$PWD/$build
rounds=${BENCH_ROUNDS:-30}
tries=${BENCH_TRIES:-3}
out=$build/bench.tsv
need=
command -v containerd >/dev/null || need="$need containerd"
command -v runc >/dev/null || need="$need runc"
[ -x /usr/lib/cni/bridge ] || need="$need containernetworking-plugins"
if [ -n "$need" ]; then
	apt-get update -q >/dev/null
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $need >/dev/null
fi
. tests/integration/lib-node.sh
. tests/bench/lib-proxy.sh

: >"$out"
row() { # row METRIC OURS PEER
	local ratio=-
	[ "$3" = - ] || ratio=$(awk -v a="$2" -v b="$3" 'BEGIN { if (b > 0) printf "%.4f", a / b; else print "-" }')
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$ratio" | tee -a "$out"
}
median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }
pss_of() { # pss_of PID...: kB together
	local pid
	for pid in "$@"; do awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup" 2>/dev/null; done | awk '{ s += $1 } END { print s + 0 }'
}
# The monitors have a cgroup of their own below the runtime's.
monitors() { cat /sys/fs/cgroup/{memory,.}/"$node_name"/monitors/cgroup.procs 2>/dev/null | sort -u; }

peer_start() {
	peer=$node_dir/peer
	mkdir -p "$peer"/{root,state,cni}
	packaging/tools/make-busybox-image.sh --name localhost/pause:1 --cmd '["sleep","1000000"]' "$peer/pause.tar" >/dev/null
	cat >"$peer/cni/10-bridge.conflist" <<CNI
{"cniVersion": "0.4.0", "name": "peer", "plugins": [
 {"type": "bridge", "bridge": "peer0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$peer/ipam", "ranges": [[{"subnet": "10.79.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
CNI
	cat >"$peer/config.toml" <<TOML
version = 2
root = "$peer/root"
state = "$peer/state"
[grpc]
  address = "$peer/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$peer/cni"
TOML
	nsenter --net="/proc/$net_pid/ns/net" setsid containerd -c "$peer/config.toml" >"$peer/log" 2>&1 </dev/null &
	peer_pid=$!
	until_true 20 ctr -a "$peer/containerd.sock" version
	ctr -a "$peer/containerd.sock" -n k8s.io images import "$peer/pause.tar" >/dev/null
	ctr -a "$peer/containerd.sock" -n k8s.io images import "$node_dir/web.tar" >/dev/null
}
peer_stop() {
	kill "$peer_pid" 2>/dev/null
	wait "$peer_pid" 2>/dev/null
}
shims() { pgrep -f "containerd-shim.*$peer/containerd.sock"; }

bench_cri() {
	local image=localhost/node-lite-web:latest try call
	for try in $(seq "$tries"); do
		"$build/tests/bench/cri_bench" "$cri_socket" $image "$rounds" >"$node_dir/ours.$try" || return 1
		"$build/tests/bench/cri_bench" "$peer/containerd.sock" $image "$rounds" >"$node_dir/peer.$try" || return 1
	done
	for call in $(cut -f1 "$node_dir/ours.1"); do
		for column in 2 3; do
			row "cri.$call.$([ $column = 2 ] && echo p50 || echo p99)_ms" \
				"$(awk -v c="$call" -v k=$column '$1 == c { print $k }' "$node_dir"/ours.* | median)" \
				"$(awk -v c="$call" -v k=$column '$1 == c { print $k }' "$node_dir"/peer.* | median)"
		done
	done
}

bench_runc() {
	local bundle=$node_dir/bundle i start
	mkdir -p "$bundle/rootfs/bin"
	cp /bin/busybox "$bundle/rootfs/bin/true"
	(cd "$bundle" && runc spec && jq '.process.args = ["/bin/true"] | .process.terminal = false | .root.readonly = false' config.json >c && mv c config.json)
	for i in $(seq "$rounds"); do
		start=$(date +%s%N)
		runc --root "$node_dir/runc" run -b "$bundle" "bench$i" || return 1
		echo $((($(date +%s%N) - start) / 10000)) | sed 's/..$/.&/'
	done | median >"$node_dir/runc-ms"
	row "container_start_ms (StartContainer p50 against runc run)" \
		"$(awk '$1 == "StartContainer" { print $2 }' "$node_dir"/ours.* | median)" "$(cat "$node_dir/runc-ms")"
}

bench_idle() {
	sync
	sleep 3
	row "pss_idle_runtime_kb (peer: containerd)" "$(pss_of "${node_pid[runtime]}")" "$(pss_of "$peer_pid")"
	row "pss_idle_kubelet_kb" "$(pss_of "${node_pid[kubelet]}")" -
	row "pss_idle_proxy_kb" "$(pss_of "${node_pid[proxy]}")" -
	row "pss_idle_three_daemons_kb" "$(pss_of "${node_pid[@]}")" -
}

bench_memory() {
	local image=localhost/node-lite-web:latest done_pods=0 pods
	for pods in 10 50; do
		for i in $(seq $((done_pods + 1)) $pods); do bench_pod "$i"; done
		until_true 120 test_ready "$pods"
		"$build/tests/bench/cri_bench" "$peer/containerd.sock" $image fill $((pods - done_pods))
		done_pods=$pods
		sync
		sleep 5
		# shellcheck disable=SC2046
		row "pss_${pods}_pods_node_kb (three daemons and monitors; peer: containerd and shims, no kubelet)" \
			"$(pss_of "${node_pid[@]}" $(monitors))" "$(pss_of "$peer_pid" $(shims))"
		# shellcheck disable=SC2046
		row "pss_${pods}_pods_monitors_kb (peer: shims)" "$(pss_of $(monitors))" "$(pss_of $(shims))"
		row "pss_${pods}_pods_three_daemons_kb" "$(pss_of "${node_pid[@]}")" -
	done
	"$build/tests/bench/cri_bench" "$peer/containerd.sock" $image clear
	rm -f "$node_dir"/manifests/bench-*.yaml
	until_true 120 no_pods
}
bench_pod() {
	apply "bench-$1.yaml" <<POD
apiVersion: v1
kind: Pod
metadata: {name: bench-$1}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: "localhost/node-lite-web:latest", imagePullPolicy: Never, command: ["sleep", "100000"]}
POD
}
test_ready() { [ "$(pods | jq '[.items[] | select(.status.phase == "Running")] | length')" = "$1" ]; }

bench_pod_start() {
	local i start
	for i in $(seq 20); do
		start=$(date +%s%N)
		bench_pod "start$i"
		until [ "$(pod_field "bench-start$i" .status.phase 2>/dev/null)" = Running ]; do :; done
		echo $((($(date +%s%N) - start) / 1000000))
	done >"$node_dir/starts"
	row "pod_manifest_to_running_p50_ms" "$(median <"$node_dir/starts")" -
	rm -f "$node_dir"/manifests/bench-*.yaml
	until_true 60 no_pods
}

bench_startup() {
	local start i
	for i in 1 2 3 4 5; do
		kill_daemon runtime TERM
		rm -f "$cri_socket"
		start=$(date +%s%N)
		start_runtime
		until [ -S "$cri_socket" ]; do :; done
		echo $((($(date +%s%N) - start) / 1000000)) >>"$node_dir/up-ours"
		peer_stop
		rm -f "$peer/containerd.sock"
		start=$(date +%s%N)
		nsenter --net="/proc/$net_pid/ns/net" setsid containerd -c "$peer/config.toml" >>"$peer/log" 2>&1 </dev/null &
		peer_pid=$!
		until [ -S "$peer/containerd.sock" ]; do :; done
		echo $((($(date +%s%N) - start) / 1000000)) >>"$node_dir/up-peer"
		sleep 1
	done
	row "runtime_start_to_serving_ms (with nsenter and setsid on both sides)" "$(median <"$node_dir/up-ours")" "$(median <"$node_dir/up-peer")"
}

node_start
peer_start
bench_idle
bench_cri || echo "bench: the CRI part failed" >&2
bench_runc || echo "bench: the runc part failed" >&2
bench_pod_start
bench_memory
bench_startup
peer_stop
bench_proxy || echo "bench: the proxy part failed" >&2
echo "written to $out"

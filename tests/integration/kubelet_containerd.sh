#!/bin/bash
# Any CRI v1 runtime can be behind kubelet-lite: here containerd, with runc and the CNI plugins.
for need in containerd runc ctr /usr/lib/cni/bridge /usr/lib/cni/portmap; do
	command -v "$need" >/dev/null || { echo "skip - kubelet-lite on containerd: $need is not installed"; exit 0; }
done
. tests/integration/lib-kubelet.sh

start_containerd() {
	nsenter --net="/proc/$net_pid/ns/net" setsid containerd -c "$node_dir/containerd.toml" >>"$node_dir/containerd.log" 2>&1 </dev/null &
	node_pid[containerd]=$!
	until_true 20 ctr --address "$cri_socket" version
}
containerd_node_start() {
	mount -t tmpfs -o size=1g,mode=0700 node-lite-test "$node_dir" || exit 1
	mkdir -p "$node_dir"/{manifests,kubelet,logs,links,cni}
	net_start
	in_net sysctl -qw net.ipv4.ip_forward=1
	cat >"$node_dir/containerd.toml" <<END
version = 2
root = "$node_dir/ctd-root"
state = "$node_dir/ctd-state"
[grpc]
  address = "$cri_socket"
[ttrpc]
  address = "$node_dir/ttrpc.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$node_dir/cni"
END
	cat >"$node_dir/cni/10.conflist" <<END
{"cniVersion":"1.0.0","name":"$node_name","plugins":[
 {"type":"bridge","bridge":"$node_name","isGateway":true,"hairpinMode":true,"ipam":{"type":"host-local","dataDir":"$node_dir/ipam","ranges":[[{"subnet":"10.87.0.0/16"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
END
	printf '#!/bin/sh\ntrap "exit 0" TERM\nwhile :; do sleep 100000 & wait $!; done\n' >"$node_dir/pause.sh"
	chmod +x "$node_dir/pause.sh"
	packaging/tools/make-busybox-image.sh --name localhost/pause:1 --add "/pause=$node_dir/pause.sh" --entrypoint '["/pause"]' "$node_dir/pause.tar" >/dev/null
	packaging/tools/make-demo-image.sh "$node_dir/web.tar" >/dev/null
	start_containerd || { not_ok "containerd starts"; tail -n 20 "$node_dir/containerd.log"; exit 1; }
	for i in pause web; do ctr --address "$cri_socket" -n k8s.io image import "$node_dir/$i.tar" >/dev/null || exit 1; done
	start_kubelet "$@"
	until_true 10 get /api/v1/namespaces || { not_ok "kubelet-lite starts"; exit 1; }
}
containers_there() { ctr --address "$cri_socket" -n k8s.io container ls -q | wc -l; }
containerd_node_stop() {
	[ -n "$net_pid" ] || return
	rm -f "$node_dir"/manifests/*
	[ -n "${node_pid[kubelet]:-}" ] && until_true 30 no_pods && kill_daemon kubelet TERM
	[ -n "${node_pid[containerd]:-}" ] && kill_daemon containerd TERM
	find /sys/fs/cgroup -maxdepth 4 -depth -type d -path "*/$node_name*" -exec rmdir {} + 2>/dev/null
	kill "$net_pid" 2>/dev/null
	wait "$net_pid" 2>/dev/null
	net_pid=
	umount -R "$node_dir" 2>/dev/null || umount -l "$node_dir" 2>/dev/null
	rmdir "$node_dir" 2>/dev/null
}
trap containerd_node_stop EXIT

containerd_node_start
cp packaging/examples/web*.yaml "$node_dir/manifests/"
check "the examples run on containerd" until_true 60 eval 'pod_ready web-1 && pod_ready web-2' || { explain web-1; tail -n 20 "$node_dir/containerd.log"; }
check "the page comes from inside" eval 'page "$(pod_field web-1 .status.podIP):8080" | grep -q "this is web-1"'
id=$(container_id web-1 web)
restart_kubelet KILL
check "after kill -9 the same containers run" until_true 10 eval 'pod_ready web-1 && [ "$(container_id web-1 web)" = "$id" ] && [ "$(restarts web-1 web)" = 0 ]'
kill_daemon containerd TERM
sleep 1
start_containerd
check "containerd restarted: the same containers run" until_true 30 eval 'pod_ready web-1 && [ "$(container_id web-1 web)" = "$id" ]'
pod crash "exit 5" | apply crash.yaml
check "a container that ends is noticed without events, and restarted" until_true 15 is crash '.status.containerStatuses[0].restartCount >= 1'
check "its exit code is known" until_true 5 is crash '.status.containerStatuses[0].lastState.terminated.exitCode == 5'
pod slow "$forever" "livenessProbe: {exec: {command: [sleep, '60']}, timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 2}" | apply slow.yaml
check "an exec probe that takes too long fails" until_true 20 event slow Unhealthy "command timed out"
sed 's/Hello from node-lite/Hello again/' "$node_dir/manifests/web.yaml" | apply web.yaml
check "a ConfigMap's change does not restart the pod" eval 'sleep 1; [ "$(container_id web-1 web)" = "$id" ]'
rm -f "$node_dir"/manifests/*
check "all pods go" until_true 60 no_pods
check "nothing is left in containerd" until_true 10 test "$(containers_there)" = 0
check "no mounts are left" test -z "$(grep -F "$node_dir/kubelet" /proc/mounts)"

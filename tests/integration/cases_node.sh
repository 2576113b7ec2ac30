#!/bin/bash
# cases_node.sh - failures that users of other kubelets met (docs/cases.md names each), tried on kubelet-lite and runtime-lite.
. tests/integration/lib-kubelet.sh
kubelet_node_start
seconds_now() { date +%s%N; }
node_ready() { get "/api/v1/nodes/$(get /api/v1/nodes | jq -r '.items[0].metadata.name')" | jq -e 'any(.status.conditions[]; .type == "Ready" and .status == "True")' >/dev/null; }
instances() { crictl_lite ps --quiet --label io.kubernetes.pod.name="$1" 2>/dev/null | wc -l; }

# A manifest with a uid of its own is removed and put back at once (kubelet 1)
pod fixed "echo up; $forever" | sed 's/^  name: fixed/&\n  uid: 11111111-2222-3333-4444-555555555555/' >"$node_dir/fixed"
cp "$node_dir/fixed" "$node_dir/manifests/fixed.yaml"
check "a pod with a uid of its own runs" until_true 10 pod_ready fixed || explain fixed
id=$(container_id fixed c)
rm "$node_dir/manifests/fixed.yaml"; sleep 0.5; cp "$node_dir/fixed" "$node_dir/manifests/fixed.yaml"
again() { pod_ready fixed && [ "$(container_id fixed c)" != "$id" ] && [ "$(instances fixed)" = 1 ]; }
check "removed and put back: the same uid runs again, in a new container" until_true 15 again || explain fixed
check "counted from 0" is fixed '.status.containerStatuses[0].restartCount == 0'
# sed -i makes a file beside and renames it (kubelet 6)
uid=$(uid fixed)
sed -i 's/echo up/echo edited/' "$node_dir/manifests/fixed.yaml"
check "sed -i: the new version, once" until_true 15 log_says fixed c edited || explain fixed
check "alone" until_true 5 eval '[ "$(instances fixed)" = 1 ]'
clean_pods

# A host port goes to the next version while we are away (K2)
port_pod() { pod port "echo $1; httpd -p 80 -h /www; $forever" "ports: [{containerPort: 80, hostPort: 18081}]"; }
port_pod one | apply port.yaml
until_true 10 pod_ready port
kill_daemon kubelet KILL
port_pod two | apply port.yaml
start_kubelet
check "changed while we were away, with a host port: the next version runs" until_true 20 log_says port c two || explain port
check "alone" until_true 5 eval '[ "$(instances port)" = 1 ]'
check "and was never refused" eval '! event port NodePorts'
clean_pods

# One pod hangs, others do not (kubelet 10, R2)
pod hung "$forever" "livenessProbe: {exec: {command: ['true']}, periodSeconds: 1}" | apply hung.yaml
pod other "$forever" | apply other.yaml
until_true 10 eval 'pod_ready hung && pod_ready other'
monitor=$(crictl_lite inspectp "$(crictl_lite pods --quiet --label io.kubernetes.pod.name=hung)" | jq -r .info.info.pid)
kill -STOP "$monitor"
pod next "$forever" | apply next.yaml
check "with a pod whose monitor hangs others start" until_true 8 pod_ready next || explain next
remove other.yaml
check "and end" gone other 8
sleep 4
check "the node is ready" node_ready
kill -CONT "$monitor"
check "the hung one goes on" until_true 20 pod_ready hung || explain hung
clean_pods
mkdir "$node_dir/hung"
if [ -c /dev/fuse ] && { python3 tests/fakes/hung_fs.py "$node_dir/hung" >"$node_dir/hung.log" 2>&1 & hung=$!; until_true 3 grep -q mounted "$node_dir/hung.log"; }; then
	pod stuck "$forever" "volumeMounts: [{name: v, mountPath: /v}]" "volumes: [{name: v, hostPath: {path: $node_dir/hung/x, type: Directory}}]" | apply stuck.yaml
	sleep 1
	pod fine "$forever" | apply fine.yaml
	check "a volume on a hung file system holds up its own pod only" until_true 8 pod_ready fine || explain fine
	check "the API answers" get /healthz
	check "the node is ready" node_ready
	kill "$hung"; wait "$hung" 2>/dev/null
	umount -l "$node_dir/hung"
	clean_pods
else
	echo "skip - a hung file system: no /dev/fuse"
fi

# Both daemons are killed while a pod ends; the next one has the same directory (kubelet 13)
ends() { pod ends "trap 'sleep 4; echo end $1 >>/v/f; exit 0' TERM; echo begin $1 >>/v/f; while :; do sleep 1000 & wait \$!; done" "volumeMounts: [{name: v, mountPath: /v}]" \
	"volumes: [{name: v, hostPath: {path: $node_dir/shared, type: DirectoryOrCreate}}]" | sed 's/PeriodSeconds: 2/PeriodSeconds: 20/'; }
ends one | apply ends.yaml
until_true 10 grep -q "begin one" "$node_dir/shared/f"
remove ends.yaml
sleep 1
kill_daemon kubelet KILL; kill_daemon runtime KILL
ends two | apply ends.yaml
start_kubelet; start_runtime
check "both daemons killed while a pod ends: the next one runs" until_true 30 grep -q "begin two" "$node_dir/shared/f" || explain ends
check "after the other has ended in its grace" test "$(tr '\n' ' ' <"$node_dir/shared/f")" = "begin one end one begin two " || cat "$node_dir/shared/f"
remove ends.yaml
check "and ends" gone ends 20

# A pod that is not ready does not become so by a restart of ours (kubelet 20)
pod unready "$forever" "readinessProbe: {exec: {command: [sh, -c, 'sleep 0.5; false']}, periodSeconds: 1}" | apply unready.yaml
until_true 10 is unready '.status.phase == "Running"'
sleep 1
restart_kubelet KILL
ever=no
for _ in $(seq 20); do pod_ready unready && ever=yes; sleep 0.1; done
check "not ready stays not ready over a restart" test $ever = no
clean_pods

# The same restart policy in the wrong place (R10, kubelet 29)
pod misplaced "exit 1" | sed 's/^  name: misplaced/&\n  restartPolicy: Never/' | apply misplaced.yaml
check "a restart policy under metadata is named" until_true 5 event misplaced UnknownField 'metadata.restartPolicy' || explain misplaced
check "and the default counts" until_true 15 is misplaced '.status.containerStatuses[0].restartCount >= 1'
clean_pods
kubelet_node_end

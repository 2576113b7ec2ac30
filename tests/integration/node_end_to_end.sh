#!/bin/bash
# The example Pods and Service on a whole node: seen through the API, the ClusterIP and the NodePort, and over restarts.
. tests/integration/lib-node.sh

both_answer() {
	local first= second= i
	for i in $(seq 60); do
		case $(page "$1") in *web-1*) first=1 ;; *web-2*) second=1 ;; *) sleep 0.1 ;; esac
		[ -n "$first" ] && [ -n "$second" ] && return 0
	done
	return 1
}
containers() { pods | jq -r '.items[] | .metadata.name as $p | .status.containerStatuses[] | "\($p) \(.containerID) \(.restartCount)"' | sort; }
same_containers() { [ "$(containers)" = "$before" ]; }
both_ready() { pod_ready web-1 && pod_ready web-2; }

node_start
cp packaging/examples/*.yaml "$node_dir/manifests/"
check "both example pods become ready" until_true 60 both_ready || show_logs
check "ClusterIP answers from both" until_true 10 both_answer "$(service_ip web)"
check "NodePort answers from both" until_true 10 both_answer 192.0.2.10:30080
before=$(containers)
for d in runtime kubelet proxy; do
	for signal in TERM KILL; do
		kill_daemon $d $signal
		check "traffic flows while $d is down after SIG$signal" both_answer "$(cat "$node_dir/ip" 2>/dev/null || service_ip web)"
		start_$d
		check "$d comes back after SIG$signal: pods are ready" until_true 30 both_ready
		check "$d after SIG$signal: no container was restarted" same_containers
		service_ip web >"$node_dir/ip"
	done
done
kill_daemon runtime TERM
kill_daemon kubelet TERM
start_kubelet
sleep 2
start_runtime
check "kubelet started before the runtime: pods are ready" until_true 40 both_ready
check "kubelet started before the runtime: the same containers, by the same ids" until_true 10 same_containers
rm "$node_dir"/manifests/web-2.yaml
check "a removed manifest's pod goes" until_true 30 pod_absent web-2
check "the Service goes on with the other pod" until_true 10 page "$(service_ip web)"
rm "$node_dir"/manifests/*.yaml
check "all pods go" until_true 30 no_pods
check "all sandboxes go" until_true 30 no_sandboxes
rest=$(leftovers | grep -vE '(runtime|kubelet|proxy)-lite --|sleep 100000')
check "nothing is left over: $rest" test -z "$rest"

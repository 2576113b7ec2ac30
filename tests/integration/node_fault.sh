#!/bin/bash
# Pods come and go for a minute while each daemon is killed with -9 at random: then the wanted state is reached, exactly,
# and nothing has leaked. FAULT_SECONDS and FAULT_SEED choose the length and the walk.
. tests/integration/lib-node.sh
RANDOM=${FAULT_SEED:-20261201}
seconds=${FAULT_SECONDS:-60}
kills=0 changes=0

pod_manifest() { # pod_manifest NAME VERSION
	apply "$1.yaml" <<POD
apiVersion: v1
kind: Pod
metadata:
  name: $1
  labels: {app: fault}
  annotations: {version: "$2"}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/node-lite-web:latest
    imagePullPolicy: Never
    command: ["sh", "-c", "echo $2 > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"]
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
POD
}
wanted() { for f in "$node_dir"/manifests/*.yaml; do basename "$f" .yaml; done | grep -v service | sort; }
have() { pods | jq -r '.items[] | select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | select(.metadata.deletionTimestamp == null) | .metadata.name' | sort; }
reached() { [ "$(wanted)" = "$(have)" ] && [ "$(crictl_lite pods --quiet --ready | wc -l)" = "$(wanted | wc -l)" ]; }
right_versions() {
	local pod version
	for pod in $(wanted); do
		version=$(sed -n 's/.*echo \([0-9]*\) >.*/\1/p' "$node_dir/manifests/$pod.yaml")
		[ "$(in_net curl -sf --max-time 3 "http://$(pod_field "$pod" .status.podIP):8080/")" = "$version" ] || return 1
	done
}

node_start
apply service.yaml <<'SERVICE'
apiVersion: v1
kind: Service
metadata: {name: fault}
spec:
  selector: {app: fault}
  ports: [{port: 80, targetPort: http}]
SERVICE
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
	pod=pod-$((RANDOM % 8))
	changes=$((changes + 1))
	if [ $((RANDOM % 3)) = 0 ]; then rm -f "$node_dir/manifests/$pod.yaml"; else pod_manifest $pod $changes; fi
	sleep 0.$((RANDOM % 5 + 1))
	if [ $((RANDOM % 4)) = 0 ]; then
		case $((RANDOM % 3)) in 0) d=runtime ;; 1) d=kubelet ;; 2) d=proxy ;; esac
		kill_daemon $d KILL
		sleep 0.$((RANDOM % 4))
		start_$d
		kills=$((kills + 1))
	fi
done
echo "note: $changes changes, $kills kills"
check "the wanted state is reached after $kills kills" until_true 90 reached || { echo "wanted: $(wanted)"; echo "have: $(have)"; show_logs; }
check "each pod runs its last version" until_true 20 right_versions
if [ -n "$(wanted)" ]; then check "the Service answers" until_true 10 page "$(service_ip fault)"; fi
rm -f "$node_dir"/manifests/pod-*.yaml
check "all pods go" until_true 60 no_pods
check "all sandboxes go" until_true 60 no_sandboxes
sleep 1
rest=$(leftovers | grep -vE '(runtime|kubelet|proxy)-lite --|sleep 100000')
check "nothing has leaked: $rest" test -z "$rest"
check "no temporary file is left" test -z "$(find "$node_dir" -name '*.tmp' | head -n 5)"
check "no volume directory is left" test -z "$(ls "$node_dir/kubelet/pods" 2>/dev/null)"
check "no writable layer is left" test -z "$(ls "$node_dir/lib/containers" 2>/dev/null)"

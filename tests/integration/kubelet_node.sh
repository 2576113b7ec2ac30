#!/bin/bash
# Images from a registry, the node's namespaces, what is cleaned away, the Node object, health and metrics.
. tests/integration/lib-kubelet.sh
kubelet_node_start --node-labels=zone=a,rack=7 --hostname-override=Node-One --max-pods=40
start_registry() { # start_registry NAME OPTIONS...: prints host:port
	local name=$1
	shift
	mkdir -p "$node_dir/layout-$name"
	packaging/tools/make-busybox-image.sh --oci --name "localhost/$name:1" "$node_dir/$name.tar" >/dev/null &&
		tar -x -f "$node_dir/$name.tar" -C "$node_dir/layout-$name" || return 1
	nsenter --net="/proc/$net_pid/ns/net" setsid python3 tests/fakes/registry.py --port-file "$node_dir/port-$name" "$@" "team/$name=$node_dir/layout-$name" \
		>"$node_dir/registry-$name.log" 2>&1 </dev/null &
	node_pid[registry-$name]=$!
	until_true 5 test -s "$node_dir/port-$name"
	registry=127.0.0.1:$(cat "$node_dir/port-$name")
}
faults() { in_net curl -sf -X POST "http://$registry/fault?$1"; }

if start_registry plain; then
	pod pulled "$forever" | sed "s|image: .*|image: $registry/team/plain:1|" | apply pulled.yaml
	check "an image is pulled" until_true 15 pod_ready pulled || explain pulled
	check "Pulling event" event pulled Pulling "Pulling image \"$registry/team/plain:1\""
	check "Pulled event with its size" event pulled Pulled "Image size: "
	pod again "$forever" | sed "s|image: .*|image: $registry/team/plain:1|" | apply again.yaml
	check "IfNotPresent does not pull again" until_true 10 event again Pulled "already present on machine"
	pod always "$forever" | sed "s|image: .*|image: $registry/team/plain:1|; s/IfNotPresent/Always/" | apply always.yaml
	check "Always does" until_true 10 event always Pulling
	# A registry that hangs: a second pod with the same image shares the pull, another image is not held up
	faults "kind=hang&at=10"
	for i in 1 2; do pod hang$i "$forever" | sed "s|image: .*|image: $registry/team/plain:1|; s/IfNotPresent/Always/" | apply hang$i.yaml; done
	check "two pods wait for one pull" until_true 5 event hang2 Pulling
	faults ""
	clean_pods
	kill_daemon registry-plain TERM
	start_registry private --auth basic --user u:secret
	cat >"$node_dir/manifests/secret.yaml" <<-END
	{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths":{"$registry":{"username":"u","password":"secret"}}}'}}
	END
	pod denied "$forever" | sed "s|image: .*|image: $registry/team/private:1|" | apply denied.yaml
	check "a private image without a secret" until_true 10 event denied Failed 'Failed to pull image'
	pod allowed "$forever" "" "imagePullSecrets: [{name: pull}]" | sed "s|image: .*|image: $registry/team/private:1|" | apply allowed.yaml
	check "with the pull secret it runs" until_true 15 pod_ready allowed || explain allowed
	pod nosecret "$forever" "" "imagePullSecrets: [{name: none}]" | apply nosecret.yaml
	check "a pull secret that is not there is reported, the pod runs" until_true 10 eval 'pod_ready nosecret && event nosecret FailedToRetrieveImagePullSecret "(none)"'
	clean_pods
	kill_daemon registry-private TERM
else
	echo "skip - images from a registry: the test registry does not start"
fi

# Host namespaces
pod host "readlink /proc/self/ns/net; cat /proc/1/comm; $forever" "" "hostNetwork: true
hostPID: true
hostIPC: true" | apply host.yaml
check "a pod in the node's namespaces" until_true 10 pod_ready host || explain host
check "has the node's network" log_says host c "$(in_net readlink /proc/self/ns/net)"
check "its address is the node's" is host '.status.podIP == "192.0.2.10" and .status.hostIP == "192.0.2.10"'
pod shared "ps | grep -c '[s]leep 1000'; $forever" "" "shareProcessNamespace: true" | apply shared.yaml
check "a shared process namespace" until_true 10 pod_ready shared
check "its first process is not the container's" inside_says shared c no sh -c 'grep -q "sleep 1000" /proc/1/cmdline && echo yes || echo no'
apply links.yaml <<END
{apiVersion: v1, kind: Service, metadata: {name: svc}, spec: {ports: [{port: 1}]}}
END
pod nolinks 'env | grep -c ^SVC_ || true; env | grep -c ^SVC_; '"$forever" "" "enableServiceLinks: false" | apply nolinks.yaml
check "no Service variables where they are not wanted" until_true 10 log_says nolinks c 0
clean_pods

# What is cleaned away
pod crash "exit 1" | apply crash.yaml
check "a crash loop" until_true 20 is crash '.status.containerStatuses[0].restartCount == 2'
sleep 1
check "keeps two dead containers at most" test "$(crictl_lite ps --all --quiet | wc -l)" -le 2
check "previous logs are there" get "/api/v1/namespaces/default/pods/crash/log?container=c&previous=true"
clean_pods
mkdir -p "$node_dir/kubelet/pods/dead-uid/volumes/kubernetes.io~empty-dir/m" "$node_dir/logs/default_dead_dead-uid/c"
mount -t tmpfs none "$node_dir/kubelet/pods/dead-uid/volumes/kubernetes.io~empty-dir/m"
restart_kubelet KILL --node-labels=zone=a,rack=7 --hostname-override=Node-One --max-pods=40
check "what pods of earlier days have left is swept (11)" until_true 5 eval '[ ! -e "$node_dir/kubelet/pods/dead-uid" ] && [ ! -e "$node_dir/logs/default_dead_dead-uid" ]'

# The Node
node() { get /api/v1/nodes/node-one | jq -e "$1" >/dev/null; }
check "the Node has its name in lower case" node '.metadata.name == "node-one"'
check "is Ready" until_true 5 node 'any(.status.conditions[]; .type == "Ready" and .status == "True")'
check "labels" node '.metadata.labels | .zone == "a" and .rack == "7" and .["kubernetes.io/os"] == "linux" and .["kubernetes.io/hostname"] == "node-one"'
check "addresses" node '.status.addresses == [{"type":"InternalIP","address":"192.0.2.10"},{"type":"Hostname","address":"node-one"}]'
check "capacity" node ".status.capacity | .cpu == \"$(nproc)\" and .pods == \"40\" and (.memory | endswith(\"Ki\"))"
check "nodeInfo names the runtime" until_true 5 node '.status.nodeInfo.containerRuntimeVersion | startswith("runtime-lite://")'
kill_daemon runtime KILL
check "NotReady while the runtime is away" until_true 60 node 'any(.status.conditions[]; .type == "Ready" and .status == "False" and .reason == "KubeletNotReady")'
start_runtime
check "Ready again" until_true 30 node 'any(.status.conditions[]; .type == "Ready" and .status == "True")'
check "healthz" test "$(in_net curl -s http://127.0.0.1:20248/healthz)" = ok
pod one "$forever" | apply one.yaml
until_true 10 pod_ready one
check "metrics" eval 'in_net curl -s http://127.0.0.1:20248/metrics | grep -qx "kubelet_running_pods 1"'

# A second one on the same directory, bad flags
second() { "$BUILD/bin/kubelet-lite" --pod-manifest-path="$node_dir/manifests" --root-dir="$node_dir/kubelet" --container-runtime-endpoint="unix://$cri_socket" \
	--pod-logs-dir="$node_dir/logs" --container-logs-dir="$node_dir/links" --api-socket="$node_dir/other.sock" --healthz-port=0 "$@" 2>&1; }
refused() { # refused TEXT FLAGS...
	local out
	out=$(timeout 10 "$BUILD/bin/kubelet-lite" "${@:2}" 2>&1) && return 1
	echo "$out"
	case $out in *"$1"*) ;; *) return 1 ;; esac
}
check "a second kubelet-lite on the same directory is refused" eval 'second | grep -qE "another process|in use"'
check "an unknown flag is named" refused "--nonsense" --nonsense
check "a bad number is named" refused "--max-pods" --max-pods=many
check "a number out of range is named" refused "--container-log-max-files=1" --root-dir="$node_dir/x" --pod-manifest-path="$node_dir/x/m" --container-log-max-files=1
check "a bad endpoint is named" refused "--container-runtime-endpoint" --root-dir="$node_dir/x" --pod-manifest-path="$node_dir/x/m" --container-runtime-endpoint=127.0.0.1:1
check "a bad level is named" refused "must be one of error, warning, info, debug" --log-level=loud
out=$(timeout 10 "$BUILD/bin/kubelet-lite" --max-pods=0 2>&1)
check "it exits with 1" [ $? = 1 ]
check "and says it plainly" [ "$out" = "kubelet-lite: --max-pods=0: must be from 1 to 100000" ]
check "an address that cannot be had is named" refused "--healthz-bind-address" --root-dir="$node_dir/x" --pod-manifest-path="$node_dir/x/m" \
	--pod-logs-dir="$node_dir/x/l" --container-logs-dir="$node_dir/x/k" --api-socket="$node_dir/x/api.sock" --healthz-bind-address=192.0.2.77 --healthz-port=1
check "no socket is left of a start that failed" [ ! -e "$node_dir/x/api.sock" ]
rm -rf "$node_dir/x"
kubelet_node_end

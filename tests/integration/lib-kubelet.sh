# lib-kubelet.sh - kubelet-lite on a real runtime-lite, without the proxy: what the kubelet_*.sh tests share.
# shellcheck shell=bash
. tests/integration/lib-node.sh
image=localhost/node-lite-web:latest
# As in lib-node.sh, but patient: a busy machine or a sanitizer build is slow, not wrong. Cases that measure time do so by
# themselves.
until_true() { # until_true SECONDS COMMAND...
	local end=$((SECONDS + $1 * ${PATIENCE:-3}))
	shift
	while [ $SECONDS -le $end ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	"$@"
}

kubelet_node_start() {
	mount -t tmpfs -o size=512m,mode=0700 node-lite-test "$node_dir" || exit 1
	mkdir -p "$node_dir"/{manifests,lib,run,kubelet,logs,links}
	net_start
	start_runtime
	until_true 10 test -S "$cri_socket" || { not_ok "runtime-lite starts"; cat "$node_dir/runtime.log"; exit 1; }
	load_image >/dev/null || { not_ok "the test image loads"; exit 1; }
	start_kubelet "$@"
	until_true 10 get /api/v1/namespaces || { not_ok "kubelet-lite starts"; cat "$node_dir/kubelet.log"; exit 1; }
}
# is POD JQ-EXPRESSION: the expression is true of the pod.
is() { [ "$(pod_field "$1" "$2")" = true ]; }
phase() { is "$1" ".status.phase == \"$2\""; }
# waits_for CONTAINER REASON in POD: waits POD CONTAINER REASON
waits() { is "$1" "any((.status.containerStatuses + .status.initContainerStatuses)[]?; .name == \"$2\" and .state.waiting.reason == \"$3\")"; }
restarts() { pod_field "$1" ".status.containerStatuses[] | select(.name == \"$2\") | .restartCount"; }
container_id() { pod_field "$1" ".status.containerStatuses[] | select(.name == \"$2\") | .containerID | split(\"//\")[1]"; }
# log POD CONTAINER: what the container's newest log says.
log() { get "/api/v1/namespaces/default/pods/$1/log?container=$2"; }
log_says() { log "$1" "$2" | grep -qF -- "$3"; }
# inside POD CONTAINER COMMAND...: runs in the container.
inside() { crictl_lite exec "$(container_id "$1" "$2")" "${@:3}"; }
inside_says() { [ "$(inside "$1" "$2" "${@:4}" 2>&1)" = "$3" ]; }
# event POD REASON [TEXT]: was there such an event?
event() {
	get /api/v1/namespaces/default/events | jq -e --arg p "$1" --arg r "$2" --arg t "${3:-}" \
		'any(.items[]; .involvedObject.name == $p and .reason == $r and (.message | contains($t)))' >/dev/null
}
gone() { until_true "${2:-20}" pod_absent "$1"; }
remove() { rm -f "$node_dir/manifests/$1"; }
uid() { pod_field "$1" .metadata.uid; }
restart_kubelet() { # restart_kubelet SIGNAL [flags]
	kill_daemon kubelet "$1"
	start_kubelet "${@:2}"
	until_true 10 get /api/v1/namespaces
}
# For failures: the pod as it is.
explain() { pod_field "$1" .status; get /api/v1/namespaces/default/events | jq -r '.items[] | "\(.involvedObject.name) \(.type) \(.reason) \(.message)"'; tail -n 20 "$node_dir/kubelet.log"; }
# A pod of one container that runs a shell command: pod NAME 'COMMAND' ['more YAML of the container'] ['more of the spec']
pod() {
	cat <<END
apiVersion: v1
kind: Pod
metadata:
  name: $1
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: c
    image: $image
    imagePullPolicy: IfNotPresent
    command: [sh, -c]
    args:
    - |
$(printf '%s\n' "$2" | sed 's/^/      /')
$(printf '%s\n' "${3:-}" | sed 's/^/    /')
$(printf '%s\n' "${4:-}" | sed 's/^/  /')
END
}
forever='trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'
# All pods away, between groups of cases.
clean_pods() {
	rm -f "$node_dir"/manifests/*
	until_true 30 no_pods || { not_ok "pods of the last case go"; explain "" 2>/dev/null | tail -n 30; }
}
# The last case of each script: kubelet-lite ends on SIGTERM, and sanitizers (if built in) have found nothing.
kubelet_node_end() {
	clean_pods
	local pid=${node_pid[kubelet]}
	kill -TERM "$pid"
	until_true 10 test ! -e "/proc/$pid" || not_ok "kubelet-lite ends on SIGTERM"
	wait "$pid"
	check "kubelet-lite ends on SIGTERM with 0" test $? = 0 || tail -n 50 "$node_dir/kubelet.log"
	check "sanitizers found nothing" test -z "$(grep -E 'runtime error|Sanitizer' "$node_dir/kubelet.log")" || grep -A30 -E 'runtime error|Sanitizer' "$node_dir/kubelet.log" | head -n 80
	unset "node_pid[kubelet]"
}

#!/bin/bash
# The life of containers: restart policies and back-off, probes, hooks, grace periods, images.
. tests/integration/lib-kubelet.sh
kubelet_node_start

# Restart policies (R10, 29, 30)
pod always "exit 1" "" | apply always.yaml
pod ok-once "exit 0" "" "restartPolicy: OnFailure" | apply ok.yaml
pod fails-once "[ -e /v/done ] && exit 0; touch /v/done; exit 7" "volumeMounts: [{name: v, mountPath: /v}]" "restartPolicy: OnFailure
volumes: [{name: v, emptyDir: {}}]" | apply fails.yaml
pod never "echo last words >/dev/termination-log; exit 3" "" "restartPolicy: Never" | apply never.yaml
pod wordy "echo from the log; exit 4" "terminationMessagePolicy: FallbackToLogsOnError" "restartPolicy: Never" | apply wordy.yaml
check "Never: Failed, with its exit code" until_true 10 is never '.status.phase == "Failed" and .status.containerStatuses[0].state.terminated.exitCode == 3'
check "and its last words" is never '.status.containerStatuses[0].state.terminated.message == "last words\n"'
check "or the end of its log" until_true 5 is wordy '.status.containerStatuses[0].state.terminated.message == "from the log\n"'
check "OnFailure: success is the end" until_true 10 phase ok-once Succeeded
check "without a restart" is ok-once '.status.containerStatuses[0].restartCount == 0'
check "OnFailure: a failure is tried again" until_true 10 is fails-once '.status.phase == "Succeeded" and .status.containerStatuses[0].restartCount == 1'
check "Always: restarted at once, then waits" until_true 10 is always '.status.containerStatuses[0] | .restartCount == 1 and .state.waiting.reason == "CrashLoopBackOff"'
check "and says for how long" is always '.status.containerStatuses[0].state.waiting.message | startswith("back-off 10s restarting failed container=c pod=always_default(")'
check "lastState has the exit code" is always '.status.containerStatuses[0].lastState.terminated.exitCode == 1'
check "BackOff event" event always BackOff "Back-off restarting failed container c in pod always_default("
# A restart of ours forgets neither counts nor the back-off.
restart_kubelet KILL
check "after kill -9: still waiting, same count" until_true 5 is always '.status.containerStatuses[0] | .restartCount == 1 and .state.waiting.reason == "CrashLoopBackOff"'
check "what was done stays done" is never '.status.phase == "Failed" and .status.containerStatuses[0].restartCount == 0'
check "restarted when the 10 s are over" until_true 13 is always '.status.containerStatuses[0].restartCount == 2'
check "then 20 s" until_true 5 is always '.status.containerStatuses[0].state.waiting.message | startswith("back-off 20s")'
crictl_lite rmp --all --force >/dev/null 2>&1
sleep 1
check "even when the runtime's containers are cleaned away" is never '.status.phase == "Failed" and .status.containerStatuses[0].state.terminated.exitCode == 3'
restart_kubelet KILL
sleep 1
check "and kubelet-lite is killed" until_true 5 is never '.status.phase == "Failed" and .status.containerStatuses[0].state.terminated.exitCode == 3'
check "it does not run again" test "$(crictl_lite ps --all --label io.kubernetes.pod.name=never --quiet | wc -l)" = 0
sed 's/exit 3/exit 0/' "$node_dir/manifests/never.yaml" | apply never.yaml
check "a changed manifest of a pod that was done runs as a new pod (2)" until_true 10 is never '.status.phase == "Succeeded" and .status.containerStatuses[0].restartCount == 0'
clean_pods

# Probes
pod probes "touch /tmp/ready /tmp/live; httpd -p 8080 -h /www; $forever" "readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1}
livenessProbe: {httpGet: {path: /ok.html, port: web}, periodSeconds: 1, failureThreshold: 2}
startupProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, failureThreshold: 10}
ports: [{name: web, containerPort: 8080}]
lifecycle: {postStart: {exec: {command: [sh, -c, 'echo fine >/www/ok.html']}}}" | apply probes.yaml
check "startup, readiness and liveness probes" until_true 15 pod_ready probes || explain probes
ip=$(pod_field probes .status.podIP)
inside probes c rm /tmp/ready
check "readiness is lost" until_true 6 is probes '.status.containerStatuses[0].ready == false and .status.phase == "Running"'
check "with an event" event probes Unhealthy "Readiness probe failed: cat: can't open '/tmp/ready'"
inside probes c touch /tmp/ready
check "readiness comes back" until_true 5 pod_ready probes
inside probes c rm /www/ok.html
check "a failed liveness probe restarts the container" until_true 10 is probes '.status.containerStatuses[0].restartCount == 1'
check "with events" event probes Unhealthy "Liveness probe failed: HTTP probe failed with statuscode: 404"
check "of both kinds" event probes Killing "Container c failed liveness probe, will be restarted"
check "it is ready again" until_true 15 pod_ready probes || explain probes
pod slow "$forever" "livenessProbe: {exec: {command: [sleep, '60']}, timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 2}" | apply slow.yaml
check "a probe that exceeds its time-out has failed (18)" until_true 15 is slow '.status.containerStatuses[0].restartCount >= 1' || explain slow
check "and says so" event slow Unhealthy "command timed out"
check "its processes do not pile up (19)" test "$(inside slow c sh -c 'pgrep sleep 2>/dev/null || ps | grep -c "[s]leep 60"' | wc -l)" -le 2
pod loop "exit 0" "livenessProbe: {exec: {command: [false]}, periodSeconds: 1, failureThreshold: 1}" | apply loop.yaml
pod unlive "$forever" "livenessProbe: {exec: {command: ['false']}, periodSeconds: 1, failureThreshold: 1}" | apply unlive.yaml
check "a liveness probe that always fails ends in back-off (R11)" until_true 20 waits unlive c CrashLoopBackOff || explain unlive
clean_pods

# Ready does not flap over a restart of ours (20)
pod steady "$forever" "readinessProbe: {exec: {command: [sh, -c, 'sleep 1']}, periodSeconds: 2, timeoutSeconds: 3}" | apply steady.yaml
check "a slow probe is ready" until_true 10 pod_ready steady
before=$(pod_field steady '[.status.conditions[] | select(.type == "Ready") | .lastTransitionTime][0]')
restart_kubelet KILL
check "Ready at once after kill -9" until_true 1 pod_ready steady
sleep 3
check "and since the same moment" test "$(pod_field steady '[.status.conditions[] | select(.type == "Ready") | .lastTransitionTime][0]')" = "$before"
clean_pods

# Hooks and grace
took() { # took MIN MAX: seconds (with tenths) since $start
	local t=$((($(date +%s%N) - start) / 100000000))
	echo "took $t tenths"
	[ $t -ge $(($1 * 10)) ] && [ $t -le $(($2 * 10)) ]
}
hooked() { # hooked NAME GRACE PRESTOP COMMAND
	pod "$1" "$4" "lifecycle: {preStop: $3}
volumeMounts: [{name: v, mountPath: /v}]" "volumes: [{name: v, hostPath: {path: $node_dir/$1-dir, type: DirectoryOrCreate}}]" |
		sed "s/terminationGracePeriodSeconds: 2/terminationGracePeriodSeconds: $2/" | apply "$1.yaml"
}
hooked stops 10 "{exec: {command: [sh, -c, 'sleep 1; echo hook >>/v/order']}}" 'trap "echo term >>/v/order; exit 0" TERM; echo up >/v/order; while :; do sleep 1000 & wait $!; done'
until_true 10 test -s "$node_dir/stops-dir/order"
start=$(date +%s%N); remove stops.yaml
check "preStop runs, then SIGTERM" gone stops 10
check "in this order" test "$(tr '\n' ' ' <"$node_dir/stops-dir/order")" = "up hook term "
check "and then it ends at once" took 1 4
hooked stubborn 2 "{sleep: {seconds: 0}}" 'trap "" TERM; echo up >/v/order; while :; do sleep 1000; done'
until_true 10 test -s "$node_dir/stubborn-dir/order"
start=$(date +%s%N); remove stubborn.yaml
check "SIGTERM is ignored: SIGKILL after the grace period" gone stubborn 10
check "which is kept" took 2 5
hooked long 4 "{exec: {command: [sleep, '300']}}" 'trap "" TERM; echo up >/v/order; while :; do sleep 1000; done'
until_true 10 test -s "$node_dir/long-dir/order"
start=$(date +%s%N); remove long.yaml
check "a preStop that takes too long (22)" gone long 15
check "does not exceed the grace period by more than 2 s" took 4 8
hooked hurry 60 "{exec: {command: [sleep, '300']}}" 'trap "" TERM; echo up >/v/order; while :; do sleep 1000; done'
until_true 10 test -s "$node_dir/hurry-dir/order"
remove hurry.yaml; sleep 1
check "while preStop runs the pod is there" is hurry '.metadata.deletionTimestamp != null'
start=$(date +%s%N)
curl -sf --unix-socket "$api_socket" -X DELETE "http://x/api/v1/namespaces/default/pods/hurry?gracePeriodSeconds=1" >/dev/null
check "a shorter grace period interrupts it" gone hurry 15
check "at once" took 0 5
pod bad-hook "$forever" "lifecycle: {postStart: {exec: {command: [sh, -c, 'exit 1']}}}" | apply bad.yaml
check "a failed postStart hook kills the container" until_true 15 is bad-hook '.status.containerStatuses[0].restartCount >= 1' || explain bad-hook
check "with its event" event bad-hook FailedPostStartHook "PostStartHook failed"
clean_pods

# Sidecars end after the regular containers
apply order.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: order}
spec:
  terminationGracePeriodSeconds: 10
  volumes: [{name: v, hostPath: {path: $node_dir/order-dir, type: DirectoryOrCreate}}]
  initContainers:
  - {name: s1, image: $image, imagePullPolicy: IfNotPresent, restartPolicy: Always, volumeMounts: [{name: v, mountPath: /v}], command: [sh, -c, 'trap "echo s1 >>/v/o; exit 0" TERM; while :; do sleep 1000 & wait \$!; done']}
  - {name: s2, image: $image, imagePullPolicy: IfNotPresent, restartPolicy: Always, volumeMounts: [{name: v, mountPath: /v}], command: [sh, -c, 'trap "echo s2 >>/v/o; exit 0" TERM; while :; do sleep 1000 & wait \$!; done']}
  containers:
  - {name: c, image: $image, imagePullPolicy: IfNotPresent, volumeMounts: [{name: v, mountPath: /v}], command: [sh, -c, 'trap "sleep 1; echo c >>/v/o; exit 0" TERM; echo up >/v/up; while :; do sleep 1000 & wait \$!; done']}
END
until_true 10 pod_ready order; until_true 5 test -e "$node_dir/order-dir/up"
remove order.yaml
check "a pod with sidecars ends" gone order 15
check "the regular container first, sidecars in reverse" test "$(tr '\n' ' ' <"$node_dir/order-dir/o")" = "c s2 s1 "

# Images
pod nopull "$forever" "" | sed 's/IfNotPresent/Never/; s|image: .*|image: localhost/absent:1|' | apply nopull.yaml
pod missing "$forever" "" | sed 's|image: .*|image: 127.0.0.1:1/absent:1|' | apply missing.yaml
check "Never: the image must be there" until_true 5 waits nopull c ErrImageNeverPull
check "an image that cannot be pulled" until_true 10 waits missing c RegistryUnavailable || explain missing
check "then waits" until_true 10 waits missing c ImagePullBackOff
check "and says what was wrong" is missing '.status.containerStatuses[0].state.waiting.message | startswith("Back-off pulling image \"127.0.0.1:1/absent:1\": RegistryUnavailable: image pull failed for 127.0.0.1:1/absent:1 because the registry is unavailable: ")'
check "events" event missing Failed 'Failed to pull image "127.0.0.1:1/absent:1": '
pod present "$forever" "" | apply present.yaml
check "meanwhile others start (24)" until_true 5 pod_ready present
clean_pods
# A registry that accepts and says nothing holds up its own pod only (24)
in_net sh -c 'nc -lk -p 5999 >/dev/null 2>&1 & echo $! >'"$node_dir/nc.pid" </dev/null
for i in 1 2 3 4 5 6; do pod "hang$i" "$forever" "" | sed "s|image: .*|image: 127.0.0.1:5999/hang:$i|" | apply "hang$i.yaml"; done
sleep 1
pod quick "$forever" "" | apply quick.yaml
start=$(date +%s%N)
check "a black hole of a registry does not hold up a pod whose image is there" until_true 5 pod_ready quick
clean_pods
check "pods that wait for a pull can be deleted" no_pods
kill "$(cat "$node_dir/nc.pid")" 2>/dev/null

# A command that is not there
apply nocmd.yaml <<END
{apiVersion: v1, kind: Pod, metadata: {name: nocmd}, spec: {restartPolicy: Never, containers: [{name: c, image: "$image", imagePullPolicy: IfNotPresent, command: [/nowhere]}]}}
END
check "a command that is not there fails the container" until_true 10 is nocmd '.status.phase == "Failed" and .status.containerStatuses[0].state.terminated.exitCode == 128'
check "and is named" is nocmd '.status.containerStatuses[0].state | tostring | contains("/nowhere")' || explain nocmd
clean_pods

# Deadline
pod deadline "$forever" "" "activeDeadlineSeconds: 2" | apply deadline.yaml
check "activeDeadlineSeconds" until_true 10 is deadline '.status.phase == "Failed" and .status.reason == "DeadlineExceeded"' || explain deadline
clean_pods
kubelet_node_end

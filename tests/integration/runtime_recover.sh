#!/bin/bash
# runtime_recover.sh - the daemon stops, is killed at any moment, and comes back; monitors die; nothing is lost or left.
set -u
. tests/integration/lib-runtime.sh
runtime_start
monitor_of() { pod_field .info.info.pid "$1"; }
starts=$(wc -l <"$rt_dir/daemon.log")

# --- restart: what runs goes on, what ends meanwhile is known afterwards
new_pod pod-a '{"labels":{"k":"v"}}' >/dev/null
run pod-a ticker '{}' sh -c 'i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done' >/dev/null
run pod-a brief '{}' sh -c 'sleep 1; exit 42' >/dev/null
run pod-a deaf '{}' sh -c 'trap "" TERM; while :; do sleep 0.1; done' >/dev/null
container later '{}' sleep 1000
rl create pod-a "$rt_dir/later.con" "$rt_dir/pod-a.pod" >/dev/null
ip=$(pod_field .status.network.ip pod-a)
pid=$(field .info.info.pid ticker)
rl stop --timeout 4s --abandon 200ms deaf >/dev/null 2>&1
daemon_stop KILL
sleep 2
check "containers live on without the daemon" kill -0 "$pid"
lines=$(wc -l <"$rt_dir/logs/pod-a/ticker.log")
check "and their logs are written" test "$lines" -gt 10
check "the daemon starts again" daemon_start
is "the pod is ready" "SANDBOX_READY $ip v" pod_field '"\(.status.state) \(.status.network.ip) \(.status.labels.k)"' pod-a
is "the container runs" "CONTAINER_RUNNING $pid" field '"\(.status.state) \(.info.info.pid)"' ticker
is "an end meanwhile has its code" "CONTAINER_EXITED 42 Error" field '"\(.status.state) \(.status.exitCode) \(.status.reason)"' brief
check "and its time" test "$(field '(.status.finishedAt | tonumber) - (.status.startedAt | tonumber) | . > 0.9e9 and . < 1.6e9' brief)" = true
is "a container that was made is still there" CONTAINER_CREATED state later
check "and can be started" rl start later
is "exec works" hi rl exec ticker echo hi
check "a stop that was asked before ends in its time" until_true 5 exited deaf
is "by kill" 137 field .status.exitCode deaf
check "an end after the restart is seen" rl stop --timeout 0s later
is "with its code" 137 field .status.exitCode later

daemon_stop TERM
check "SIGTERM leaves containers running" kill -0 "$pid"
check "and takes the socket away" test ! -e "$rt_socket"
check "start once more" daemon_start
is "still the same process" "$pid" field .info.info.pid ticker

# --- the monitor dies
new_pod pod-b >/dev/null
run pod-b one '{}' sh -c 'sleep 1000 & sleep 1000' >/dev/null
run pod-b two '{}' sleep 1000 >/dev/null
one=$(field .info.info.pid one)
kill -9 "$(monitor_of pod-b)"
b_gone() { [ "$(pod_state pod-b)" = SANDBOX_NOTREADY ] && exited one && exited two; }
begin=$(milliseconds)
check "a pod whose monitor died is not ready, its containers ended" until_true 3 b_gone
check "within a second" test $(($(milliseconds) - begin)) -lt 1500
check "its processes are gone" until_true 2 not kill -0 "$one"
is "the other pod is as it was" CONTAINER_RUNNING state ticker
check "it can be removed" rl rmp pod-b

# --- the monitor dies while the daemon is away
new_pod pod-c >/dev/null
run pod-c one '{}' sleep 1000 >/dev/null
one=$(field .info.info.pid one)
monitor=$(monitor_of pod-c)
daemon_stop KILL
kill -9 "$monitor"
check "start after that" daemon_start
is "the pod is not ready" SANDBOX_NOTREADY pod_state pod-c
is "its container has ended" CONTAINER_EXITED state one
check "its processes are gone" until_true 2 not kill -0 "$one"
check "it can be removed" rl rmp pod-c

# --- what was half done is undone
new_pod pod-d >/dev/null
run pod-d one '{}' sleep 1000 >/dev/null
run pod-d two '{}' sleep 1000 >/dev/null
id=$(pod_field .status.id pod-d) two=$(field .status.id two)
daemon_stop KILL
half() { jq -c "$1" "$2" >"$2.new" && mv "$2.new" "$2"; }
half '.creating = true' "$rt_dir/run/sandboxes/$id/containers/$two/config.json"
check "start with a half-made container" daemon_start
fails "it is undone" "no container" rl inspect two
is "the other one stays" CONTAINER_RUNNING state one
daemon_stop KILL
half '.state = "creating"' "$rt_dir/run/sandboxes/$id/config.json"
check "start with a half-made pod" daemon_start
fails "it is undone" "no pod" rl inspectp pod-d
new_pod pod-e >/dev/null
id=$(pod_field .status.id pod-e)
daemon_stop KILL
: >"$rt_dir/run/sandboxes/$id/config.json"
mkdir -p "$rt_dir/lib/containers/0123456789abcdef/upper"
check "start with a file that lost its content" daemon_start
fails "that pod is removed" "no pod" rl inspectp pod-e
check "a writable layer without a container is removed" test ! -e "$rt_dir/lib/containers/0123456789abcdef"
daemon_stop TERM
half '.version = 99' "$rt_dir/run/sandboxes/$(ls "$rt_dir/run/sandboxes")/config.json"
fails "a state of a newer version is refused" "written by a newer version" timeout 10 nsenter --net="/proc/$net_pid/ns/net" \
	"$BUILD/bin/runtime-lite" --root="$rt_dir/lib" --state="$rt_dir/run" --listen="unix://$rt_socket" --cgroup-parent="/$rt_name"
check "and nothing of it is touched" kill -0 "$pid"
half '.version = 1' "$rt_dir/run/sandboxes/$(ls "$rt_dir/run/sandboxes")/config.json"
check "start with the known version" daemon_start
is "all is as it was" "CONTAINER_RUNNING $pid" field '"\(.status.state) \(.info.info.pid)"' ticker
rl rmp --force pod-a >/dev/null
check "nothing is left" nothing_left

# --- kill -9 at random moments while pods come and go
churn() { # NAME
	while [ ! -e "$rt_dir/stop" ]; do
		pod "$1"
		container "c$1" '{}' sleep 1000
		timeout 10 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" run "$rt_dir/c$1.con" "$rt_dir/$1.pod"
		timeout 10 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" rmp --force "$1"
		sleep 0.02
	done >/dev/null 2>&1
}
for i in 1 2 3 4 5 6; do churn "churn$i" & extra_pids+=($!); done
for i in $(seq "${ROUNDS:-15}"); do
	sleep "0.$((RANDOM % 4 + 1))$((RANDOM % 10))"
	daemon_stop KILL
	daemon_start || break
done
touch "$rt_dir/stop"
wait "${extra_pids[@]}"
extra_pids=()
check "the daemon answers after ${ROUNDS:-15} kills" rl version
is "all pods can be removed" 0 bash -c "'$BUILD/bin/runtime-lite' --listen=unix://$rt_socket rmp --all --force >/dev/null; echo \$?"
check "nothing is left of them" nothing_left
check "no error was logged" not grep -E ' error: ' "$rt_dir/daemon.log"

#!/bin/bash
# runtime_events.sh - GetContainerEvents: what is told, in which order, with which state; the codes of unknown ids.
set -u
. tests/integration/lib-runtime.sh
runtime_start

rl events --output json --count 9 >"$rt_dir/events" 2>"$rt_dir/events.err" & watcher=$!
"$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" events --count 3 >"$rt_dir/few" & few=$!
sleep 0.3
new_pod p >/dev/null
run p c '{}' sh -c 'sleep 0.2; exit 3' >/dev/null
until_true 5 exited c
rl rm c >/dev/null
rl stopp p >/dev/null
rl rmp p >/dev/null
new_pod q >/dev/null # its first event is the ninth
check "the stream ends after the events" timeout 10 tail --pid=$watcher -f /dev/null
types() { jq -r '"\(.containerEventType | sub("CONTAINER_"; "") | sub("_EVENT"; "")) \(if .containerId == .podSandboxStatus.id then "pod" else "container" end)"' "$rt_dir/events"; }
is "what happens, in its order" "CREATED pod
STARTED pod
CREATED container
STARTED container
STOPPED container
DELETED container
STOPPED pod
DELETED pod
CREATED pod" types
is "each with the pod" 9 bash -c "jq -r .podSandboxStatus.metadata.name '$rt_dir/events' | grep -c '[pq]'"
is "and the state right after" "CONTAINER_RUNNING" bash -c "jq -rs '.[3].containersStatuses[0].state' '$rt_dir/events'"
is "an end with its code" "CONTAINER_EXITED 3 Error" bash -c "jq -rs '.[4].containersStatuses[0] | \"\\(.state) \\(.exitCode) \\(.reason)\"' '$rt_dir/events'"
is "a stopped pod is not ready" SANDBOX_NOTREADY bash -c "jq -rs '.[6].podSandboxStatus.state' '$rt_dir/events'"
is "times grow" true bash -c "jq -rs 'map(.createdAt | tonumber) | . == sort and (unique | length) == 9' '$rt_dir/events'"
check "a second listener had its own" timeout 5 tail --pid=$few -f /dev/null
is "in text" "3" bash -c "grep -c 'pod=test/p' '$rt_dir/few'"

# A listener that does not read is dropped; the daemon goes on.
"$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" events >/dev/null & lazy=$!
sleep 0.3
kill -STOP $lazy
new_pod busy '{"annotations":{"long":"'"$(head -c 60000 /dev/zero | tr '\0' x)"'"}}' >/dev/null
run busy b '{}' sleep 1000 >/dev/null
flood() { for _ in $(seq 80); do container "f$1" '{}' true; rl create busy "$rt_dir/f$1.con" "$rt_dir/busy.pod" && rl start "f$1" && rl rm --force "f$1"; done; }
for i in 1 2 3 4; do flood $i >/dev/null 2>&1 & extra_pids+=($!); done
wait "${extra_pids[@]}"
extra_pids=()
check "the daemon is alive" rl version
kill -CONT $lazy
kill $lazy
wait $lazy 2>/dev/null

# A whole id goes to the daemon as it is.
unknown=$(printf '%064d' 7)
check "stop of an unknown container is fine" rl stop "$unknown"
check "removal, too" rl rm --force "$unknown"
check "stop of an unknown pod is fine" rl stopp "$unknown"
fails "status of an unknown container is NotFound" "not found" rl inspect "$unknown"
fails "status of an unknown pod, too" "not found" rl inspectp "$unknown"
fails "start of an unknown container, too" "not found" rl start "$unknown"
rl rmp --all --force >/dev/null
check "nothing is left" nothing_left

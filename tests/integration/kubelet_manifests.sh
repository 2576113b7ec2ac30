#!/bin/bash
# Manifests that change, break and go; kubelet-lite that is away meanwhile; runtimes and sandboxes that die.
. tests/integration/lib-kubelet.sh
kubelet_node_start
manifest() { # manifest NAME TEXT: a pod that says TEXT
	pod "$1" "echo $2; $forever"
}
running_instances() { crictl_lite ps --quiet --label io.kubernetes.pod.name="$1" 2>/dev/null | wc -l; }
sandboxes() { crictl_lite pods --quiet | wc -l; }
same_container() { [ "$(container_id "$1" c)" = "$2" ]; }

# Adoption: nothing restarts
manifest a one | apply a.yaml
manifest b one | apply b.yaml
check "pods run" until_true 10 eval 'pod_ready a && pod_ready b'
id_a=$(container_id a c) id_b=$(container_id b c)
for i in 1 2 3 4 5; do
	restart_kubelet KILL
	sleep "0.$i"
done
check "after five times kill -9 the same containers run" until_true 5 eval 'same_container a "$id_a" && same_container b "$id_b" && pod_ready a && pod_ready b'
check "none was restarted" is a '.status.containerStatuses[0].restartCount == 0'
restart_kubelet TERM
check "the same after SIGTERM" until_true 5 eval 'same_container a "$id_a" && pod_ready a'

# Editors (K1, 6)
f=$node_dir/manifests/a.yaml
manifest a two >"$node_dir/new"
cp "$f" "$node_dir/manifests/.a.yaml.swp"; cp "$f" "$node_dir/manifests/a.yaml~"; cp "$f" "$node_dir/manifests/a.yaml.bak"; cp "$f" "$node_dir/manifests/4913"
mv "$f" "$node_dir/manifests/a.yaml~"; cp "$node_dir/new" "$f"; rm "$node_dir/manifests/.a.yaml.swp" "$node_dir/manifests/4913"
check "saved as vim does: the new version" until_true 10 log_says a c two
check "there is one of it" test "$(pods | jq '[.items[] | select(.metadata.name == "a")] | length')" = 1
uid_a=$(uid a)
rm "$node_dir/manifests/a.yaml~" "$node_dir/manifests/a.yaml.bak"
: >"$f"; sleep 0.5; head -c 100 "$node_dir/new" >>"$f"; sleep 0.5; tail -c +101 "$node_dir/new" >>"$f"
sleep 1.5
check "written in pieces: nothing restarts" test "$(uid a) $(restarts a c)" = "$uid_a 0"
id_a=$(container_id a c)
echo "kind: [" >>"$f"; sleep 1
check "a broken file: the last good version runs on" same_container a "$id_a"
# Broken while we are away, too
restart_kubelet KILL; sleep 2
check "also over a restart of kubelet-lite" test "$(running_instances a)" = 1
cp "$node_dir/new" "$f"
check "mended: the same container" until_true 10 same_container a "$id_a" || explain a

restart_kubelet KILL
echo "kind: [" >>"$f"
restart_kubelet KILL; sleep 1
manifest a mended | apply a.yaml
check "broken while we were away, mended into another version: it replaces the one that runs" until_true 10 log_says a c mended
check "which is gone" test "$(running_instances a)" = 1
pod misplaced "exit 1" | sed 's/  name: misplaced/&\n  restartPolicy: Never/' | apply misplaced.yaml
check "a field in the wrong place is named (R10, 29)" until_true 5 event misplaced UnknownField 'unknown field "metadata.restartPolicy"'
check "and the default policy holds" until_true 10 is misplaced '.status.containerStatuses[0].restartCount == 1'
remove misplaced.yaml

# Same content, another look (K5)
id_b=$(container_id b c)
touch "$node_dir/manifests/b.yaml"; sleep 0.5
{ echo "# a comment"; yaml=$(cat "$node_dir/manifests/b.yaml"); printf '%s\n' "$yaml" | sed 's/^kind: Pod$//; s/^apiVersion: v1$/kind: Pod\napiVersion: v1/'; } | apply b.yaml
sleep 1.5
check "time stamp, comments, order of keys: nothing restarts" same_container b "$id_b"

# Changes that come fast, or while we are away (K2, 1, 3)
for v in three four five; do manifest a $v | apply a.yaml; sleep 0.2; done
check "three changes in a second: the last one runs" until_true 15 log_says a c five
check "alone" until_true 5 test "$(running_instances a)" = 1
uid_a=$(uid a)
cp "$f" "$node_dir/kept"; rm "$f"; sleep 0.4; cp "$node_dir/kept" "$f"
check "removed and put back: it runs again" until_true 15 eval 'pod_ready a && [ "$(running_instances a)" = 1 ]'
check "its restart count is 0 (K4)" is a '.status.containerStatuses[0].restartCount == 0'
kill_daemon kubelet KILL
manifest a six | apply a.yaml
rm "$node_dir/manifests/b.yaml"
start_kubelet
check "changed while we were away: the new version" until_true 15 log_says a c six
check "alone" until_true 5 eval '[ "$(running_instances a)" = 1 ]'
check "removed while we were away: it is stopped" until_true 15 eval '[ "$(running_instances b)" = 0 ]'
check "and nothing of it stays" until_true 10 eval '[ "$(sandboxes)" = 1 ] && [ "$(ls "$node_dir/kubelet/pods" | wc -l)" = 1 ] && [ "$(ls "$node_dir/logs" | wc -l)" = 1 ]' || { crictl_lite pods; ls "$node_dir/kubelet/pods" "$node_dir/logs"; }
pod slow-end 'trap "sleep 3; exit 0" TERM; while :; do sleep 1000 & wait $!; done' "" | sed 's/Seconds: 2/Seconds: 10/' | apply slow.yaml
until_true 10 pod_ready slow-end
pod slow-end "echo next; $forever" | apply slow.yaml
sleep 1
restart_kubelet KILL
check "restarted in the middle of a termination: the next version runs" until_true 20 log_says slow-end c next
check "alone" eval '[ "$(running_instances slow-end)" = 1 ]'
clean_pods

# Two of one name
manifest twin first | apply a-twin.yaml
manifest twin second | apply b-twin.yaml
check "two manifests of one name: the first counts" until_true 10 log_says twin c first
check "and one pod runs" eval '[ "$(running_instances twin)" = 1 ]'
clean_pods

# Things die
pod dies "echo up; $forever" | apply dies.yaml
until_true 10 pod_ready dies
ip=$(pod_field dies .status.podIP)
crictl_lite stop "$(container_id dies c)" >/dev/null
check "a container that somebody stopped is started again" until_true 10 is dies '.status.containerStatuses[0] | .restartCount == 1 and .ready'
crictl_lite rm --force "$(container_id dies c)" >/dev/null 2>&1
check "one that somebody removed is made again" until_true 15 eval 'pod_ready dies && [ "$(running_instances dies)" = 1 ]' || explain dies
clean_pods
apply lost.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: lost}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: v, emptyDir: {}}]
  initContainers: [{name: i, image: $image, imagePullPolicy: IfNotPresent, command: [sh, -c, 'echo init >>/v/n'], volumeMounts: [{name: v, mountPath: /v}]}]
  containers: [{name: c, image: $image, imagePullPolicy: IfNotPresent, command: [sh, -c, 'wc -l </v/n; $forever'], volumeMounts: [{name: v, mountPath: /v}]}]
END
until_true 10 pod_ready lost
crictl_lite stopp "$(crictl_lite pods --quiet | head -n 1)" >/dev/null
check "a sandbox that somebody stopped is made again" until_true 20 eval 'pod_ready lost && log_says lost c 2' || explain lost
check "with its event" event lost SandboxChanged
check "init containers have run again (16)" log_says lost c 2
check "the restart is counted" is lost '.status.containerStatuses[0].restartCount == 1'
# As after a reboot: the runtime knows nothing any more
kill_daemon kubelet TERM
crictl_lite rmp --all --force >/dev/null 2>&1
start_kubelet
check "nothing left in the runtime: all starts again, init containers first" until_true 20 eval 'pod_ready lost && log_says lost c 3' || explain lost
clean_pods

# The runtime goes away
manifest r one | apply r.yaml
until_true 10 pod_ready r
id=$(container_id r c)
kill_daemon runtime KILL
manifest r2 one | apply r2.yaml
sleep 2
check "without the runtime kubelet-lite goes on" get /healthz
start_runtime
check "when it is back, what waited starts" until_true 30 pod_ready r2 || explain r2
check "and nothing was restarted" same_container r "$id"
kill_daemon kubelet KILL; kill_daemon runtime KILL
start_kubelet; sleep 1; start_runtime
check "both killed, the runtime back last: same container" until_true 20 eval 'pod_ready r && same_container r "$id"' || explain r
# One pod's monitor hangs: the others do not notice (R2, 10)
clean_pods
pod hung "touch /tmp/ok; $forever" "livenessProbe: {exec: {command: [cat, /tmp/ok]}, periodSeconds: 1, failureThreshold: 1000}" | apply hung.yaml
until_true 10 pod_ready hung
monitor=$(pgrep -f "monitor.*$(crictl_lite pods --quiet | cut -c1-20)" | head -n 1)
if [ -n "$monitor" ] && kill -STOP "$monitor"; then
	sleep 2
	manifest beside one | apply beside.yaml
	check "one pod hangs: another starts" until_true 5 pod_ready beside || explain beside
	check "probes of the hung one do not pile up" test "$(ls "/proc/${node_pid[kubelet]}/fd" | wc -l)" -lt 40
	kill -CONT "$monitor"
	check "it goes on when it goes on" until_true 10 is hung '.status.containerStatuses[0] | .ready and .restartCount == 0'
else
	echo "skip - one pod hangs: its monitor was not found"
fi
manifest r one | apply r.yaml
until_true 10 pod_ready r
# A runtime that hangs
kill -STOP "${node_pid[runtime]}"
check "a runtime that hangs: the API answers" until_true 3 get /api/v1/namespaces/default/pods
kill -CONT "${node_pid[runtime]}"
clean_pods

# Log rotation
restart_kubelet TERM --container-log-max-size=20k --container-log-max-files=3
rm -rf "$node_dir/links" # made again
pod chatty 'i=0; while :; do i=$((i + 1)); echo "line $i of a chatty container that says much the same all day"; [ $((i % 200)) = 0 ] && sleep 1; done' | apply chatty.yaml
check "a large log is rotated" until_true 40 eval '[ "$(ls "$node_dir"/logs/*chatty*/c | wc -l)" -ge 3 ]'
sleep 12
check "at most three files are kept" test "$(ls "$node_dir"/logs/*chatty*/c | wc -l)" = 3
check "links point to the current log" test -s "$(ls "$node_dir"/links/chatty_default_c-*.log)"
kubelet_node_end

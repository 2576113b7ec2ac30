#!/bin/bash
# runtime_lifecycle.sh - pods and containers from their making to their removal, with logs, exec, limits and errors.
set -u
. tests/integration/lib-runtime.sh
runtime_start

# --- pods
new_pod web '{"labels":{"app":"web"},"annotations":{"note":"a b"},"dns_config":{"servers":["10.10.10.10"],"searches":["google.com"],"options":["ndots:8"]}}' >"$rt_dir/id"
is "a pod is ready" SANDBOX_READY pod_state web
is "labels come back" web pod_field .status.labels.app web
is "annotations come back" "a b" pod_field .status.annotations.note web
check "it has an address of the pool" grep -q '^10\.88\.' <(pod_field .status.network.ip web)
fails "the same pod again is refused" "is reserved for $(cat "$rt_dir/id")" rl runp "$rt_dir/web.pod"
is "lists show it" "$(cat "$rt_dir/id")" rl pods --quiet
is "a label selects it" "$(cat "$rt_dir/id")" rl pods --quiet --label app=web
is "another label does not" "" rl pods --quiet --label app=db
has "an id can be shortened" SANDBOX_READY rl inspectp "$(cut -c1-8 "$rt_dir/id")"

# --- containers
run web main '{"labels":{"c":"1"},"envs":[{"key":"GREETING","value":"hello"}],"working_dir":"/tmp"}' \
	sh -c 'echo $GREETING from $(hostname) in $(pwd); echo oops >&2; exec sleep 1000' >/dev/null
is "a container runs" CONTAINER_RUNNING state main
until_true 5 grep -q oops "$rt_dir/logs/web/main.log"
is "its log has what it printed" "hello from web in /tmp" bash -c "'$BUILD/bin/runtime-lite' --listen=unix://$rt_socket logs main 2>/dev/null"
check "the log is in CRI's format" grep -qE '^[0-9T:.-]+(Z|\+00:00) stderr F oops$' "$rt_dir/logs/web/main.log"
is "exec gives output" "10.10.10.10" rl exec main sh -c 'sed -n "s/nameserver //p" /etc/resolv.conf'
is "resolv.conf is exact" "search google.com
nameserver 10.10.10.10
options ndots:8" rl exec main cat /etc/resolv.conf
rl exec main sh -c 'exit 7' >/dev/null 2>&1
is "exec gives the exit code" 7 echo $?
fails "exec of what is not there" 'exec: "nosuch": executable file not found in $PATH' rl exec main nosuch
rl exec main sh -c 'seq 1 3000000' 2>/dev/null | tail -c 3000000 | wc -c >"$rt_dir/many"
is "long output is capped, not lost in the middle" 3000000 cat "$rt_dir/many"
is "it is the first process of its namespace" 1 rl exec main sh -c 'readlink /proc/1/exe >/dev/null; cat /proc/1/stat | cut -d" " -f1'
check "it sees no other processes" test "$(rl exec main sh -c 'ls -d /proc/[0-9]* | wc -l')" -le 6
has "the pod has its own address" "$(pod_field .status.network.ip web)" rl exec main ip addr show eth0
check "ps shows it" grep -q main <(rl ps)
is "ps selects by label" "$(field .status.id main)" rl ps --quiet --label c=1
fails "it cannot be started twice" "only a created one can be started" rl start main

# --- exec with a time limit
begin=$(milliseconds)
fails "exec ends at its time limit" "timeout" rl exec --timeout 1s main sleep 300
check "in time" test $(($(milliseconds) - begin)) -lt 4000
is "and takes its process with it" 0 rl exec main sh -c 'ps | grep -c "[s]leep 300"'
begin=$(milliseconds)
fails "also when it prints without end" "timeout" rl exec --timeout 1s main yes
check "in time" test $(($(milliseconds) - begin)) -lt 4000
begin=$(milliseconds)
is "exec returns when its process does, though a child keeps the pipe" done rl exec main sh -c 'sleep 20 & echo done'
check "within the drain time" test $(($(milliseconds) - begin)) -lt 4000

timeout 0.5 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" exec main sleep 400 >/dev/null 2>&1
check "exec ends when its client has gone" until_true 3 not rl exec main sh -c 'ps | grep "[s]leep 400"'

# --- log rotation
mv "$rt_dir/logs/web/main.log" "$rt_dir/logs/web/main.log.1"
check "the log can be reopened" rl reopen-log main
check "a new file is there" test -f "$rt_dir/logs/web/main.log"

# --- ends
run web good '{}' sh -c 'echo bye' >/dev/null
until_true 5 exited good
is "an end with 0 is Completed" "0 Completed" field '"\(.status.exitCode) \(.status.reason)"' good
run web bad '{}' sh -c 'exit 42' >/dev/null
until_true 5 exited bad
is "an end with 42 is Error" "42 Error" field '"\(.status.exitCode) \(.status.reason)"' bad
check "times are in order" test "$(field '[.status.createdAt, .status.startedAt, .status.finishedAt] | map(tonumber) | . == sort and .[0] > 0' bad)" = true
fails "exec into it is refused" "is not running" rl exec bad true
fails "its log cannot be reopened" "is not running" rl reopen-log bad

# --- a command that is not there
container missing '{}' /no/such/program
rl create web "$rt_dir/missing.con" "$rt_dir/web.pod" >/dev/null
fails "a missing program fails at start" "/no/such/program" rl start missing
is "and is EXITED with 128, StartError" "CONTAINER_EXITED 128 StartError" field '"\(.status.state) \(.status.exitCode) \(.status.reason)"' missing
container notexec '{}' /etc/passwd
rl create web "$rt_dir/notexec.con" "$rt_dir/web.pod" >/dev/null
fails "a file that is no program, too" "permission denied" rl start notexec

# --- limits
run web small '{"linux":{"resources":{"memory_limit_in_bytes":33554432,"cpu_shares":512,"cpu_quota":50000,"cpu_period":100000,"oom_score_adj":500}}}' \
	sleep 1000 >/dev/null
cg=$(field .info.info.cgroup small)
limit_of() { cat /sys/fs/cgroup/memory"$cg"/memory.limit_in_bytes /sys/fs/cgroup"$cg"/memory.max 2>/dev/null; }
is "the kernel has the memory limit" 33554432 limit_of
is "and the process its oom_score_adj" 500 rl exec small cat /proc/1/oom_score_adj
rl update --memory 67108864 small >/dev/null
is "an update changes it" 67108864 limit_of
is "and is reported" "67108864 512 50000" field '.status.resources.linux | "\(.memoryLimitInBytes) \(.cpuShares) \(.cpuQuota)"' small
rl update --cpuset-cpus 0 small >/dev/null
is "a cpuset alone changes nothing else" "67108864 0" field '.status.resources.linux | "\(.memoryLimitInBytes) \(.cpusetCpus)"' small
fails "an impossible cpuset is refused" "cpuset" rl update --cpuset-cpus 9999 small
is "and leaves the old one stored" 0 field .status.resources.linux.cpusetCpus small
run web hog '{"linux":{"resources":{"memory_limit_in_bytes":15728640}}}' sh -c 'dd if=/dev/zero of=/dev/null bs=30M' >/dev/null
until_true 10 exited hog
is "out of memory is named" "137 OOMKilled" field '"\(.status.exitCode) \(.status.reason)"' hog

# --- users
run web user '{"linux":{"security_context":{"run_as_user":{"value":1234},"run_as_group":{"value":55},"supplemental_groups":[77,88]}}}' \
	sh -c 'id; sleep 1000' >/dev/null
until_true 5 grep -q uid "$rt_dir/logs/web/user.log"
is "user and groups" "uid=1234 gid=55 groups=55,77,88" rl logs user
is "are reported" '1234 55 ["55","77","88"]' field '.status.user.linux | "\(.uid) \(.gid) \(.supplementalGroups)"' user
container nouser '{"linux":{"security_context":{"run_as_username":"nosuch"}}}' true
fails "an unknown user is refused at create" "unable to find user nosuch" rl create web "$rt_dir/nouser.con" "$rt_dir/web.pod"
container grouponly '{"linux":{"security_context":{"run_as_group":{"value":5}}}}' true
fails "a group without user is refused" "run_as_group is specified without" rl create web "$rt_dir/grouponly.con" "$rt_dir/web.pod"

# --- mounts
mkdir "$rt_dir/vol"; echo data >"$rt_dir/vol/f"; ln -s vol "$rt_dir/link"
run web mounts '{"mounts":[{"container_path":"/rw","host_path":"'"$rt_dir"'/vol"},{"container_path":"/ro","host_path":"'"$rt_dir"'/link","readonly":true},
	{"container_path":"/made","host_path":"'"$rt_dir"'/new/dir"}],"linux":{"security_context":{"readonly_rootfs":true}}}' sleep 1000 >/dev/null
is "a mount can be read" data rl exec mounts cat /rw/f
is "and written" new rl exec mounts sh -c 'echo new >/rw/g; cat /ro/g'
fails "a read-only one cannot" "Read-only file system" rl exec mounts sh -c 'echo x >/ro/f'
fails "nor a read-only root" "Read-only file system" rl exec mounts sh -c 'echo x >/x'
check "a missing source is made a directory" test -d "$rt_dir/new/dir"
container rro '{"mounts":[{"container_path":"/m","host_path":"/tmp","recursive_read_only":true}]}' true
fails "recursive read-only needs read-only" "recursive_read_only needs readonly" rl create web "$rt_dir/rro.con" "$rt_dir/web.pod"

mkdir "$rt_dir/vi" && tar -xf "$rt_dir/busybox.tar" -C "$rt_dir/vi"
jq '.config.Volumes = {"/data": {}, "/etc": {}}' "$rt_dir/vi/$(jq -r '.[0].Config' "$rt_dir/vi/manifest.json")" >"$rt_dir/vi/c.json"
jq '.[0].Config = "c.json" | .[0].RepoTags = ["local/volumes:1"]' "$rt_dir/vi/manifest.json" >"$rt_dir/vi/m.json" && mv "$rt_dir/vi/m.json" "$rt_dir/vi/manifest.json"
tar -cf "$rt_dir/volumes.tar" -C "$rt_dir/vi" . && rl load "$rt_dir/volumes.tar" >/dev/null
run web volumes '{"image":{"image":"local/volumes:1"},"linux":{"security_context":{"readonly_rootfs":true}}}' sleep 1000 >/dev/null
is "volumes that the image declares can be written below a read-only root" "new" rl exec volumes sh -c 'echo new >/data/f; cat /data/f'
check "and have what the image has there" rl exec volumes grep -q root /etc/passwd

# --- stats
check "stats have numbers" test "$(rl stats --output json main | jq '.stats[0] | (.memory.workingSetBytes.value|tonumber) > 0 and (.cpu.usageCoreNanoSeconds.value|tonumber) > 0')" = true
check "stats of pods have network numbers" test "$(rl statsp --output json web | jq '.stats[0].linux.network.defaultInterface.name == "eth0"')" = true
rl exec main dd if=/dev/zero of=/big bs=1M count=3 >/dev/null 2>&1
check "containers that have ended are in the list" test "$(rl stats --output json | jq '.stats | length')" -ge 8

# --- stop
run web polite '{}' sh -c 'trap "exit 9" TERM; while :; do sleep 0.1; done' >/dev/null
until_true 5 rl exec polite true
rl stop --timeout 10s polite >/dev/null
is "a polite container ends by its signal" "9 Error" field '"\(.status.exitCode) \(.status.reason)"' polite
run web deaf '{}' sh -c 'trap "" TERM; while :; do sleep 0.1; done' >/dev/null
begin=$(milliseconds)
fails "a client may go away in a long stop" "" rl stop --timeout 60s --abandon 500ms deaf
is "which leaves the container alone" CONTAINER_RUNNING state deaf
check "rotation goes on meanwhile" rl reopen-log deaf
rl stop --timeout 30s deaf >/dev/null & waiter=$!
sleep 0.2
rl stop --timeout 1s deaf >/dev/null
wait $waiter
is "a shorter grace ends it, for all who wait" 137 field .status.exitCode deaf
check "in time" test $(($(milliseconds) - begin)) -lt 6000
check "stopping it again is fine" rl stop deaf

# --- removal
fails "a running container is not removed by mistake" "is running" rl rm main
check "by force it is" rl rm --force main
fails "then it is not there" "no container" rl inspect main
check "stop of the pod" rl stopp web
is "makes it not ready" SANDBOX_NOTREADY pod_state web
check "stopping again is fine" rl stopp web
fails "nothing can be created in it" "is not ready" rl create web "$rt_dir/good.con" "$rt_dir/web.pod"
is "the others have ended" 0 bash -c "'$BUILD/bin/runtime-lite' --listen=unix://$rt_socket ps --quiet | wc -l"
check "removal" rl rmp web
is "takes all containers with it" "" rl ps --all --quiet
check "nothing is left" nothing_left

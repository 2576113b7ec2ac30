#!/bin/bash
# cases_runtime.sh - failures that users of other runtimes met (docs/cases.md names each), tried on runtime-lite.
set -u
. tests/integration/lib-runtime.sh
runtime_start
free() { [ -z "$(rl ps --all --quiet)" ] && nothing_left; }
load_as() { # NAME [options of make-busybox-image.sh]
	local name=$1
	shift
	packaging/tools/make-busybox-image.sh --name "trap/$name:1" "$@" "$rt_dir/$name.tar" && rl load "$rt_dir/$name.tar"
}

# A volume on a file system that hangs (runtime 1)
mkdir "$rt_dir/hung"
if [ -c /dev/fuse ] && { python3 tests/fakes/hung_fs.py "$rt_dir/hung" >"$rt_dir/hung.log" 2>&1 & hung=$!; until_true 3 grep -q mounted "$rt_dir/hung.log"; }; then
	new_pod stuck >/dev/null
	new_pod fine >/dev/null
	container s '{"mounts":[{"container_path":"/v","host_path":"'"$rt_dir"'/hung/x"}]}' sleep 1000
	make_stuck() { timeout 2 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" create stuck "$rt_dir/s.con" "$rt_dir/stuck.pod" && timeout 2 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" start s; }
	make_stuck >"$rt_dir/stuck.log" 2>&1 & extra_pids+=($!)
	sleep 0.5
	begin=$(milliseconds)
	run fine f '{}' sleep 1000 >/dev/null
	rl ps >/dev/null
	check "a volume on a hung file system holds up its own pod only" test $(($(milliseconds) - begin)) -lt 1500
	wait "${extra_pids[@]}"
	extra_pids=()
	fails "a second try is told what it waits for" "" make_stuck
	kill "$hung"; wait "$hung" 2>/dev/null
	umount -l "$rt_dir/hung"
	check "when it answers again all can be removed" rl rmp --force stuck
	rl rmp --force fine >/dev/null
	check "and nothing is left of it" free
else
	echo "skip - a hung file system: no /dev/fuse"
fi

new_pod p >/dev/null

# Out of memory, again and again (runtime 7)
n=${OOMS:-10}
for i in $(seq "$n"); do run p "oom$i" '{"linux":{"resources":{"memory_limit_in_bytes":15728640}}}' sh -c 'dd if=/dev/zero of=/dev/null bs=30M' >/dev/null & extra_pids+=($!); done
wait "${extra_pids[@]}"
extra_pids=()
all_out() { for i in $(seq "$n"); do exited "oom$i" || return 1; done; }
until_true 20 all_out
is "OOMKilled and 137, each of $n times" "$n 137 OOMKilled" bash -c "for i in \$(seq $n); do '$BUILD/bin/runtime-lite' --listen=unix://$rt_socket inspect oom\$i | jq -r '\"\(.status.exitCode) \(.status.reason)\"'; done | sort | uniq -c | sed 's/^ *//'"

# Directories of the image that are renamed and removed inside (R8)
run p pkg '{}' sleep 1000 >/dev/null
is "a directory of the image can be moved, removed and made again" "moved 0 new" rl exec pkg sh -c '
	n=$(ls /bin | wc -l); cp /bin/busybox /tmp; /tmp/busybox mv /bin /bin2 && /tmp/busybox mv /bin2 /bin && [ "$(ls /bin | wc -l)" = $n ] && echo -n "moved "
	rm -rf /var /home; mkdir /var /home && ls -A /var /home | grep -c [a-z.]h | tr "\n" " "; echo new >/var/f; cat /var/f'

# The cgroup file system inside (R5)
is "cgroups inside are read-only" no rl exec pkg sh -c 'for d in /sys/fs/cgroup /sys/fs/cgroup/memory; do mkdir $d/mine 2>/dev/null && echo "yes $d"; done; echo no'
is "and show the container's own alone" "" rl exec pkg sh -c 'find /sys/fs/cgroup -mindepth 2 -type d ! -name "exec-*"; ls -d /sys/fs/cgroup/*/'"$rt_name"' 2>/dev/null'

# A device stays open to a container whose limits change (runtime 21)
if [ -c /dev/fuse ]; then
	run p dev '{"devices":[{"container_path":"/dev/fuse","host_path":"/dev/fuse","permissions":"rw"}]}' sleep 1000 >/dev/null
	opens() { rl exec dev sh -c 'exec 3<>/dev/fuse && echo opens'; }
	is "an extra device opens" opens opens
	rl update --memory 67108864 --cpu-shares 300 --cpu-quota 40000 --cpu-period 100000 dev >/dev/null
	is "also after an update of the limits" opens opens
fi

# The daemon's own limit of open files is nobody's business (runtime 22)
wanted=$(rl exec pkg sh -c 'ulimit -Sn; ulimit -Hn')
daemon_stop
ulimit -Sn 300
daemon_start
ulimit -Sn "$(ulimit -Hn)"
run p files '{}' sleep 1000 >/dev/null
is "a container's limit of open files is not the daemon's" "$wanted" rl exec files sh -c 'ulimit -Sn; ulimit -Hn'

# An image that declares /run as a volume, and a mount below (runtime 24)
mkdir -p "$rt_dir/vi" "$rt_dir/token" && tar -xf "$rt_dir/busybox.tar" -C "$rt_dir/vi" && echo secret >"$rt_dir/token/token"
jq '.config.Volumes = {"/run": {}}' "$rt_dir/vi/$(jq -r '.[0].Config' "$rt_dir/vi/manifest.json")" >"$rt_dir/vi/c.json"
jq '.[0].Config = "c.json" | .[0].RepoTags = ["local/run:1"]' "$rt_dir/vi/manifest.json" >"$rt_dir/vi/m.json" && mv "$rt_dir/vi/m.json" "$rt_dir/vi/manifest.json"
tar -cf "$rt_dir/run.tar" -C "$rt_dir/vi" . && rl load "$rt_dir/run.tar" >/dev/null
run p volume '{"image":{"image":"local/run:1"},"mounts":[{"container_path":"/run/secrets/kubernetes.io/serviceaccount","host_path":"'"$rt_dir"'/token","readonly":true}]}' sleep 1000 >/dev/null
is "a mount below a volume of the image" "secret yes" rl exec volume sh -c 'echo $(cat /run/secrets/kubernetes.io/serviceaccount/token) $(touch /run/x && echo yes)'

# Frozen (runtime 27)
freezer=/sys/fs/cgroup/freezer
if [ -d "$freezer/$rt_name" ]; then
	new_pod ice >/dev/null
	run ice i '{}' sleep 1000 >/dev/null
	cg=$(field .info.info.cgroup i)
	echo FROZEN >"$freezer${cg%/*}/freezer.state"
	container j '{}' sleep 1000
	rl create ice "$rt_dir/j.con" "$rt_dir/ice.pod" >/dev/null
	fails "a container of a frozen pod is not started" "is frozen" rl start j
	fails "nor is anything in one" "is frozen" rl exec i true
	check "a frozen pod can be removed" timeout 20 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" rmp --force ice
fi

# A user database that is a trap (runtime 32)
mkfifo "$rt_dir/fifo"; ln -s /dev/zero "$rt_dir/zero"; head -c 3000000 /dev/zero | tr '\0' x >"$rt_dir/big"
mkdir "$rt_dir/base"; tar -xf "$rt_dir/busybox.tar" -C "$rt_dir/base"
layer=$(jq -r '.[0].Layers[0]' "$rt_dir/base/manifest.json")
trap_user() { # NAME WANTED: /etc/passwd and /etc/group are this file
	local begin
	rm -rf "$rt_dir/evil" "$rt_dir/layout"
	mkdir -p "$rt_dir/evil/etc"
	cp -a "$rt_dir/$1" "$rt_dir/evil/etc/passwd"
	cp -a "$rt_dir/$1" "$rt_dir/evil/etc/group"
	tar -C "$rt_dir/evil" -cf "$rt_dir/evil.tar" etc
	python3 tests/fakes/layout.py "$rt_dir/layout" "trap/$1:1" "$rt_dir/base/$layer" "$rt_dir/evil.tar" >/dev/null
	rl load "$rt_dir/layout" >/dev/null
	container "t$1" '{"image":{"image":"trap/'"$1"':1"},"linux":{"security_context":{"run_as_username":"somebody"}}}' true
	begin=$(milliseconds)
	fails "a user database that is a $1" "$2" timeout 5 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" create p "$rt_dir/t$1.con" "$rt_dir/p.pod"
	check "at once" test $(($(milliseconds) - begin)) -lt 1000
}
trap_user fifo "/etc/passwd of the image: is not a regular file"
trap_user zero "unable to find user somebody"
load_as group --add /etc/group="$rt_dir/big" >/dev/null
container tgroup '{"image":{"image":"trap/group:1"},"linux":{"security_context":{"run_as_username":"root"}}}' true
fails "a giant group file" "/etc/group" rl create p "$rt_dir/tgroup.con" "$rt_dir/p.pod"

# Somebody on the node sits in the container's files (runtime 12), or holds copies of its mounts (13)
new_pod held >/dev/null
run held h '{}' sleep 1000 >/dev/null
root=/proc/$(field .info.info.pid h)/root
(cd "$root" && exec sleep 1000) & extra_pids+=($!)
"$root/bin/busybox" sleep 1000 & extra_pids+=($!)
unshare -m --propagation private sleep 1000 & extra_pids+=($!)
sleep 0.3
check "a pod whose files somebody holds is removed" timeout 10 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" rmp --force held
kill "${extra_pids[@]}"; wait "${extra_pids[@]}" 2>/dev/null
extra_pids=()

# Many that ignore SIGTERM, with the disk and the processors busy (R3)
new_pod busy >/dev/null
m=${DEAF:-10}
for i in $(seq "$m"); do run busy "d$i" '{}' sh -c 'trap "" TERM; while :; do sleep 0.3; done' >/dev/null; done
dd if=/dev/zero of="$rt_dir/fill" bs=1M count=300 conv=fsync >/dev/null 2>&1 & extra_pids+=($!)
for i in 1 2; do sh -c 'while :; do :; done' & extra_pids+=($!); done
stops=()
begin=$(milliseconds)
for i in $(seq "$m"); do rl stop --timeout 2s "d$i" >"$rt_dir/stop.$i" 2>&1 & stops+=($!); done
bad=0
for pid in "${stops[@]}"; do wait "$pid" || bad=$((bad + 1)); done
check "$m that ignore SIGTERM are stopped on a busy node, without an error" test $bad = 0
took=$(($(milliseconds) - begin))
check "in their time: $took ms" test $took -lt 6000
is "all by SIGKILL" "$m" bash -c "for i in \$(seq $m); do '$BUILD/bin/runtime-lite' --listen=unix://$rt_socket inspect d\$i | jq .status.exitCode; done | grep -c 137"
kill "${extra_pids[@]}" 2>/dev/null; wait "${extra_pids[@]}" 2>/dev/null
extra_pids=()
rl rmp --all --force >/dev/null
check "nothing is left" nothing_left
check "no error was logged" not grep -E ' error: ' "$rt_dir/daemon.log"

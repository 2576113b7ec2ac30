#!/bin/bash
# The daemon in a chroot: the root of its mount namespace is another one, which no container may see, by exec neither.
. tests/integration/lib-runtime.sh
mkdir "$rt_dir/root"
daemon_start() {
	nsenter --net="/proc/$net_pid/ns/net" unshare --mount --propagation private sh -c 'mount --rbind / "$0" && exec chroot "$0" "$@"' \
		"$rt_dir/root" setsid "$BUILD/bin/runtime-lite" --root="$rt_dir/lib" --state="$rt_dir/run" --listen="unix://$rt_socket" \
		--cgroup-parent="/$rt_name" "$@" >>"$rt_dir/daemon.log" 2>&1 </dev/null &
	rt_pid=$!
	until_true 20 rl version
}
runtime_start
new_pod web >/dev/null
check "a container runs" run web c '{}' sh -c 'echo "$(ls /)" >/tmp/seen; exec sleep 1000'
is "exec finds what the container sees" "$(rl exec c cat /tmp/seen)" rl exec c ls /
fails "and nothing of the node" "No such file" rl exec c ls "$rt_dir"
is "they have the same root" "$(rl exec c stat -c %d:%i /proc/1/root/)" rl exec c stat -c %d:%i /
is "whose parent is itself" "$(rl exec c stat -c %d:%i /)" rl exec c stat -c %d:%i /..
rl rmp --all --force >/dev/null
check "nothing is left" nothing_left

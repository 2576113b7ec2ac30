#!/bin/bash
# runtime_parallel.sh - many pods at once, clients that go away, monitors that hang: only their own pod waits.
set -u
. tests/integration/lib-runtime.sh
runtime_start
n=${PODS:-20}

make() { # I
	pod "p$1"
	container "c$1" '{}' sh -c 'echo up; exec sleep 1000'
	rl run "$rt_dir/c$1.con" "$rt_dir/p$1.pod"
}
all() { # COMMAND: for each pod, at once
	local pids=() pid bad=0
	for i in $(seq "$n"); do
		"$1" "$i" >"$rt_dir/out.$i" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || bad=$((bad + 1)); done
	[ $bad -eq 0 ] || cat "$rt_dir"/out.*
	[ $bad -eq 0 ]
}
remove() { rl rmp --force "p$1"; }
check "$n pods are made at once" all make
is "all run" "$n" bash -c "'$BUILD/bin/runtime-lite' --listen=unix://$rt_socket ps --quiet | wc -l"
is "each has an address of its own" "$n" bash -c "for i in \$(seq $n); do '$BUILD/bin/runtime-lite' --listen=unix://$rt_socket inspectp p\$i | jq -r .status.network.ip; done | sort -u | wc -l"
reach() { rl exec "c$1" ping -c 1 -W 2 "$(pod_field .status.network.ip "p$((n + 1 - $1))")"; }
check "each reaches another" all reach

# R1: some monitors and some containers die at the same moment as all are removed
for i in 1 4 7; do kill -9 "$(pod_field .info.info.pid "p$i")"; done
for i in 2 5 8; do kill -9 "$(field .info.info.pid "c$i")"; done
check "all are removed at once, though some have just died" all remove
check "nothing is left" nothing_left

# R2: a monitor that hangs
new_pod hung >/dev/null
run hung h '{}' sleep 1000 >/dev/null
new_pod fine >/dev/null
run fine f '{}' sleep 1000 >/dev/null
monitor=$(pod_field .info.info.pid hung)
kill -STOP "$monitor"
for i in $(seq 20); do timeout 5 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" exec --timeout 1s h true >/dev/null 2>&1 & extra_pids+=($!); done
begin=$(milliseconds)
rl ps >/dev/null; rl pods >/dev/null; rl exec f true; rl stop --timeout 0s f >/dev/null; rl rmp --force fine >/dev/null
check "with a hung monitor others are served at once" test $(($(milliseconds) - begin)) -lt 2000
wait "${extra_pids[@]}"
extra_pids=()
kill -CONT "$monitor"
check "it is served when it goes on" until_true 10 rl exec h true
kill -STOP "$monitor"
begin=$(milliseconds)
fails "an exec without a time-out hears that the monitor hangs" "has not started it within 10 s" rl exec h true
check "after 10 s" test $(($(milliseconds) - begin)) -lt 14000
# the first stop hears that the monitor does not answer; kubelet asks again, and that must lead to an end
rl stop --timeout 0s h >/dev/null 2>&1
check "a container below a hung monitor can be stopped" timeout 30 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" stop --timeout 0s h
check "its pod is not ready then" until_true 2 test "$(pod_state hung)" = SANDBOX_NOTREADY
check "a pod with a hung monitor can be removed" rl rmp --force hung
check "nothing is left of it" nothing_left

# a client that goes away in the middle: nothing is half made, and the name is free again
pod gone
for ms in 1 2 4 6 8 10 15 20 30; do
	timeout "0.0$(printf %02d $ms)" "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" runp "$rt_dir/gone.pod" >/dev/null 2>&1
	rl rmp --force gone >/dev/null 2>&1
done
free_again() { rl runp "$rt_dir/gone.pod" && rl rmp --force gone; }
check "after calls that were given up the name is free" until_true 10 free_again
check "nothing is left of them" nothing_left

# containers that end in the moment when they are removed (R13)
ends() {
	local i
	new_pod short >/dev/null
	for i in $(seq 40); do
		run short "s$i" '{}' sh -c "sleep 0.0$((i % 8))" >/dev/null || return 1
		rl rm --force "s$i" >/dev/null || return 1
	done
	rl rmp --force short
}
check "containers are removed as they end, 40 times" ends
check "nothing is left of those" nothing_left
check "no error was logged" not grep -E ' error: ' "$rt_dir/daemon.log"

#!/bin/bash
# runtime_streaming.sh - exec, attach and port-forward with clients of both protocols; see tests/fakes/streaming_test.py.
set -u
. tests/integration/lib-runtime.sh
runtime_start
new_pod web '{}' >"$rt_dir/web.id"
new_pod host '{"linux":{"security_context":{"namespace_options":{"pid":"CONTAINER","network":"NODE"}}}}' >"$rt_dir/host.id"
run web main '{}' sh -c 'while :; do sleep 1000; done' >"$rt_dir/main.id"
run web tty '{"tty":true,"stdin":true}' sh >/dev/null
run web once '{"stdin":true,"stdin_once":true}' sh >/dev/null
run web open '{"stdin":true}' sh >/dev/null
id() { field .status.id "$1"; }
pid_of() { cut -d' ' -f2 "$rt_dir"/run/sandboxes/*/containers/"$(id "$1")"/pid; }
in_net python3 tests/fakes/streaming_test.py "$rt_socket" "$rt_pid" "$(cat "$rt_dir/web.id")" "$(cat "$rt_dir/host.id")" "$(id main)" \
	"$(id tty)" "$(id once)" "$(id open)" "$(pid_of main)" "$@"

# --- what a session costs is given back
descriptors() { ls /proc/$rt_pid/fd | wc -l; }
few_descriptors() { [ "$(descriptors)" -le 60 ]; }
check "no descriptor is left: $(descriptors)" until_true 10 few_descriptors
only_ours() { [ -z "$(rl exec main ps -o args | grep -vE '^(COMMAND|ARGS|ps -o args|sh -c while|sleep 1000)' | tee /dev/stderr)" ]; }
check "no process is left in the container" until_true 5 only_ours

# --- the daemon goes
in_net python3 - "$rt_socket" "$(id main)" >"$rt_dir/left.log" 2>&1 <<'P' &
import sys
sys.path.insert(0, "tests/fakes")
from streaming import *
s = Session(exec_url(sys.argv[1], sys.argv[2], ["sleep", "555"]))
print("begun", flush=True)
print("ended", s.run().code(), flush=True)
P
client=$!
until_true 10 grep -q begun "$rt_dir/left.log"
until_true 5 rl exec main sh -c 'ps | grep "[s]leep 555"' >/dev/null
begin=$(milliseconds)
daemon_stop
check "the daemon stops at once though a session is open" test $(($(milliseconds) - begin)) -lt 2500
wait $client
has "its client is not kept waiting" ended cat "$rt_dir/left.log"
daemon_start
check "the exec ended with its daemon" until_true 5 not rl exec main sh -c 'ps | grep "[s]leep 555"'
is "the containers did not" CONTAINER_RUNNING state main

# --- its address
other() { in_net timeout 5 "$BUILD/bin/runtime-lite" --root="$rt_dir/other" --state="$rt_dir/other.run" --listen="unix://$rt_dir/other.sock" "$@"; }
fails "a streaming address that is none" "--streaming-address" other --streaming-address=localhost
in_net python3 -c 'import socket,time; s = socket.socket(); s.bind(("127.0.0.1", 8234)); s.listen(); time.sleep(12)' &
until_true 5 in_net bash -c ': <>/dev/tcp/127.0.0.1/8234' 2>/dev/null
fails "a streaming address that is taken" "127.0.0.1:8234 is in use" other --streaming-address=127.0.0.1:8234
daemon_stop
daemon_start "--streaming-address=[::1]:0"
in_net python3 - "$rt_socket" "$(id main)" >"$rt_dir/six.log" 2>&1 <<'P'
import sys
sys.path.insert(0, "tests/fakes")
from streaming import *
print(bytes(Session(exec_url(sys.argv[1], sys.argv[2], ["echo", "over six"])).run().out).decode())
P
has "a streaming address of IPv6" "over six" cat "$rt_dir/six.log"

# --- a monitor that hangs: the client is told
monitor=$(pod_field .info.info.pid web)
kill -STOP "$monitor"
begin=$(milliseconds)
in_net python3 - "$rt_socket" "$(id main)" >"$rt_dir/hung.log" 2>&1 <<'P'
import sys
sys.path.insert(0, "tests/fakes")
from streaming import *
print(Session(exec_url(sys.argv[1], sys.argv[2], ["echo", "never"])).run().status)
P
has "an exec below a monitor that hangs hears of it" "has not started it within 10 s" cat "$rt_dir/hung.log"
check "after 10 s" test $(($(milliseconds) - begin)) -lt 14000
kill -CONT "$monitor"
check "and it is served when it goes on" until_true 5 rl exec main true
rl rmp --all --force >/dev/null 2>&1
check "nothing is left over" nothing_left

#!/bin/bash
# runtime_bad_input.sh - wrong flags, files and images, a second instance: a clear message, and nothing else disturbed.
set -u
. tests/integration/lib-runtime.sh
bin=$BUILD/bin/runtime-lite
exit_code() { "$@" >/dev/null 2>&1; echo $?; }

# --- the command line
fails "an unknown flag" "unknown flag --nosuch" "$bin" --nosuch
fails "a flag that is nearly right" "did you mean --state?" "$bin" --stat=/x
is "exits with 1" 1 exit_code "$bin" --nosuch
fails "a bad log level" 'flag --log-level: value "loud" is not allowed; allowed: error, warning, info, debug' "$bin" --log-level=loud
fails "a bad number" 'flag --nofile: value "many"' "$bin" --nofile=many
fails "a relative cgroup parent" "flag --cgroup-parent" "$bin" --cgroup-parent=x
fails "an unknown command" 'unknown command "frobnicate"' "$bin" frobnicate
fails "a command without its arguments" "usage: runtime-lite stop" "$bin" stop
fails "a command's unknown flag" "unknown flag --loud" "$bin" ps --loud
fails "a command without a daemon" "$rt_socket" rl ps
is "exits with 1" 1 exit_code rl ps
has "--help lists the flags" "--cgroup-parent" "$bin" --help
has "--version" "runtime-lite " "$bin" --version

runtime_start
again() { timeout 20 nsenter --net="/proc/$net_pid/ns/net" "$bin" --root="$rt_dir/$1" --state="$rt_dir/$2" --listen="$3" --cgroup-parent="/$rt_name"; }
fails "a second daemon on the same state" "$rt_dir/run is in use by another runtime-lite" again lib2 run "unix://$rt_dir/2.sock"
fails "a second daemon on the same root" "$rt_dir/lib" again lib run2 "unix://$rt_dir/2.sock"
fails "a second daemon on the same socket" "in use by another process" again lib2 run2 "unix://$rt_socket"
fails "an address that is no Unix socket" "must be a Unix socket" again lib2 run2 127.0.0.1:1234
fails "a root that is a file" "busybox.tar" again busybox.tar run2 "unix://$rt_dir/2.sock"
check "the first one is not disturbed" rl version

# --- pods
try_pod() { echo "$1" >"$rt_dir/try.pod"; rl runp "$rt_dir/try.pod"; }
fails "a file that is not there" "nosuch.json" rl runp "$rt_dir/nosuch.json"
fails "a file that is not JSON" "try.pod" try_pod '{"metadata": '
fails "an unknown field is named" 'unknown field "hostnam"' try_pod '{"hostnam": "x"}'
fails "a wrong type is named" "hostname: is a number, must be a string" try_pod '{"hostname": 5}'
fails "metadata is needed" "metadata is missing" try_pod '{}'
fails "a bad hostname" 'hostname "a b"' try_pod '{"metadata":{"name":"x","namespace":"n","uid":"u"},"hostname":"a b"}'
fails "a bad port" "port_mappings[0]" try_pod '{"metadata":{"name":"x","namespace":"n","uid":"u"},"port_mappings":[{"host_port":99999,"container_port":1}]}'
fails "user namespaces" "user namespaces of pods are not supported" try_pod '{"metadata":{"name":"x","namespace":"n","uid":"u"},"linux":{"security_context":{"namespace_options":{"userns_options":{"mode":"POD"}}}}}'
fails "a foreign sysctl" "kernel.hostname" try_pod '{"metadata":{"name":"x","namespace":"n","uid":"u"},"linux":{"sysctls":{"kernel.hostname":"x"}}}'
fails "a cgroup parent with .." "cgroup_parent" try_pod '{"metadata":{"name":"x","namespace":"n","uid":"u"},"linux":{"cgroup_parent":"/a/../../b"}}'
pod x
fails "an unknown handler" 'no runtime for "kata"' rl runp --runtime-handler kata "$rt_dir/x.pod"
check "none of them left a pod" no_pods
check "nor anything else" nothing_left

# --- containers
new_pod p '{"port_mappings":[{"host_port":18080,"container_port":80}]}' >/dev/null
try() { # NAME JSON COMMAND...
	container "$@"
	rl create p "$rt_dir/$1.con" "$rt_dir/p.pod"
}
fails "an image that is not there" "nosuch" try c '{"image":{"image":"nosuch:1"}}' true
fails "no image" "image is empty" try c '{"image":{"image":""}}' true
fails "an unknown capability" 'unknown capability "FLY"' try c '{"linux":{"security_context":{"capabilities":{"add_capabilities":["FLY"]}}}}' true
fails "a mount without a source" 'host_path "" must be an absolute path' try c '{"mounts":[{"container_path":"/x"}]}' true
fails "propagation of a mount that is not shared" "shared" try c '{"mounts":[{"container_path":"/x","host_path":"/proc","propagation":"PROPAGATION_BIDIRECTIONAL"}],"linux":{"security_context":{"privileged":true}}}' true
fails "a device that is none" "is not a device" try c '{"devices":[{"container_path":"/dev/x","host_path":"/etc/passwd"}]}' true
fails "a device that is not there" "/dev/nosuch" try c '{"devices":[{"container_path":"/dev/x","host_path":"/dev/nosuch"}]}' true
fails "a missing seccomp profile" "/nosuch.json" try c '{"linux":{"security_context":{"seccomp":{"profile_type":"Localhost","localhost_ref":"/nosuch.json"}}}}' true
fails "negative memory" "memory" try c '{"linux":{"resources":{"memory_limit_in_bytes":-5}}}' true
fails "a log path that leads out" '".."' try c '{"log_path":"../../x.log"}' true
fails "a relative working directory" "must be an absolute path" try c '{"working_dir":"tmp"}' true
fails "a target that is not there" "target" try c '{"linux":{"security_context":{"namespace_options":{"pid":"TARGET"}}}}' true
fails "a pod that is not there" "no pod" rl create nosuch "$rt_dir/c.con" "$rt_dir/p.pod"
is "none of them is there" "" rl ps --all --quiet
pod q '{"port_mappings":[{"host_port":18080,"container_port":80}]}'
fails "a host port that is taken names its owner" "18080" rl runp "$rt_dir/q.pod"
try c '{}' true >/dev/null
fails "the same container again" "is reserved for" try c '{}' true
check "unknown ids are no error for stop" rl stopp p

# --- images whose user database is a trap (CVE-2026-47262)
trap_image() { # NAME [options of make-busybox-image.sh]
	local name=$1
	shift
	packaging/tools/make-busybox-image.sh --name "trap/$name:1" "$@" "$rt_dir/$name.tar" && rl load "$rt_dir/$name.tar"
}
head -c 2000000 /dev/zero | tr '\0' x >"$rt_dir/big"
check "an image with a giant /etc/passwd" trap_image big --add /etc/passwd="$rt_dir/big"
new_pod r >/dev/null
try_user() { container "$1" '{"image":{"image":"trap/'"$1"':1"},"linux":{"security_context":{"run_as_username":"somebody"}}}' true; rl create r "$rt_dir/$1.con" "$rt_dir/r.pod"; }
begin=$(milliseconds)
fails "its user is refused" "/etc/passwd" try_user big
check "at once" test $(($(milliseconds) - begin)) -lt 1000
rl rmp --all --force >/dev/null
check "nothing is left" nothing_left
check "the daemon is alive" rl version

# --- a full disk under the state
daemon_stop
mkdir "$rt_dir/full"
mount -t tmpfs -o size=192k node-lite-test "$rt_dir/full"
mount --bind "$rt_dir/full" "$rt_dir/run"
check "the daemon starts on a small disk" daemon_start
new_pod s >/dev/null
container s1 '{}' sleep 1000
new_pod u >/dev/null
run u u1 '{}' sleep 1000 >/dev/null
head -c 1000000 /dev/zero >"$rt_dir/full/fill" 2>/dev/null
pod t
fails "a pod on a full disk" "No space left on device" rl runp "$rt_dir/t.pod"
fails "a container on a full disk" "No space left on device" rl create s "$rt_dir/s1.con" "$rt_dir/s.pod"
check "stop works on a full disk" rl stopp s
check "and removal" rl rmp s
check "also of a pod whose container still runs" rl rmp --force u
rm "$rt_dir/full/fill"
check "with space there is nothing in the way" rl runp "$rt_dir/t.pod"
rl rmp --force t >/dev/null
daemon_stop
umount "$rt_dir/run" "$rt_dir/full"
check "nothing is left of it all" nothing_left

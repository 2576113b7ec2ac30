#!/bin/bash
# image_daemon.sh - images through the daemon: pulls that are cut short, containers that hold layers, loads beside it.
set -u
. tests/integration/lib-runtime.sh
[ "$(id -u)" = 0 ] || { echo "skip - image_daemon: needs root"; exit 0; }
runtime_start
fakes=tests/fakes
lib=$rt_dir/lib

# A registry beside the daemon. The second image has /dev as a link to the node's /tmp, as far as it can reach.
packaging/tools/make-busybox-image.sh --oci --name app:1 "$rt_dir/app.tar" >/dev/null
mkdir -p "$rt_dir/layout" "$rt_dir/evil"
tar -C "$rt_dir/layout" -xf "$rt_dir/app.tar"
layer=$(ls -S "$rt_dir"/layout/blobs/sha256/* | head -n 1)
gzip -dc "$layer" >"$rt_dir/base.tar"
ln -s ../../../../../../tmp "$rt_dir/evil/dev"
tar -C "$rt_dir/evil" -cf "$rt_dir/evil.tar" dev
python3 $fakes/layout.py "$rt_dir/layout" evil "$rt_dir/base.tar" "$rt_dir/evil.tar" >/dev/null
nsenter --net="/proc/$net_pid/ns/net" python3 $fakes/registry.py --port-file "$rt_dir/port" app="$rt_dir/layout" library/app="$rt_dir/layout" >"$rt_dir/registry.log" 2>&1 &
extra_pids+=($!)
until_true 10 test -s "$rt_dir/port"
registry=127.0.0.1:$(cat "$rt_dir/port")
fault() { in_net curl -s -X POST "http://$registry/fault?$1" >/dev/null; }
empty() { [ -z "$(ls "$1")" ]; }
layers() { ls "$lib/layers" | wc -l; }

has "pull" sha256: rl pull "$registry/app:1"
has "the image is there" "$registry/app" rl images
before=$(layers)
container held '{"image":{"image":"'"$registry"'/app:1"}}' sh -c 'exec sleep 1000'
new_pod p >/dev/null
rl create p "$rt_dir/held.con" "$rt_dir/p.pod" >/dev/null && rl start held >/dev/null
has "a container of it runs" "BusyBox" rl exec held busybox
check "its image can be removed" rl rmi "$registry/app:1"
fails "and is gone" "is not present" rl rmi "$registry/app:1"
is "its layers stay" "$before" layers
has "the container still has its files" "root:x:0:0" rl exec held cat /etc/passwd
daemon_stop KILL
daemon_start
is "also over a kill of the daemon" "$before" layers
has "it runs on" "root:x:0:0" rl exec held cat /etc/passwd
rl rmp --force p >/dev/null
is "with the last container its layers go" $((before - 1)) layers

# A pull that does not get on disturbs nobody, and ends with who asked for it.
fault "kind=hang&match=blobs&at=1000&seconds=60"
timeout 1.5 "$BUILD/bin/runtime-lite" --listen="unix://$rt_socket" pull "$registry/app:1" >/dev/null 2>&1 &
client=$!
until_true 5 pgrep -f "^pull $registry/app:1"
begin=$(milliseconds)
rl images >/dev/null
check "lists answer meanwhile" test $(($(milliseconds) - begin)) -lt 1000
wait $client
check "the pull ends when its client is gone" until_true 5 not pgrep -f "^pull $registry/app:1"
check "and leaves nothing" until_true 5 empty "$lib/staging"
is "no image" 0 bash -c "'$BUILD/bin/runtime-lite' --listen=unix://$rt_socket images | grep -c $registry"

# The daemon is killed in the middle of one.
rl pull "$registry/app:1" >/dev/null 2>&1 &
client=$!
until_true 5 pgrep -f "^pull $registry/app:1"
daemon_stop KILL
wait $client
check "the pull program dies with the daemon" until_true 5 not pgrep -f "^pull $registry/app:1"
daemon_start
check "the next start cleans up after it" empty "$lib/staging"
fault ""
has "and the next pull succeeds" sha256: rl pull "$registry/app:1"

# Flags.
daemon_stop
mkdir -p "$rt_dir/certs/docker.io"
printf '[host."http://%s"]\n' "$registry" >"$rt_dir/certs/docker.io/hosts.toml"
daemon_start --max-layer-bytes=100000 --pinned-images="$registry/app:1"
has "pinned images are reported as such" '"pinned": true' bash -c "'$BUILD/bin/runtime-lite' --listen=unix://$rt_socket images --output json | grep pinned"
rl rmi "$registry/app:1" >/dev/null
fails "a limit for layers" "100000 bytes allowed" rl pull "$registry/app:1"
daemon_stop
daemon_start --pull-progress-timeout=1s --registry-config-dir="$rt_dir/certs"
fault "kind=hang&match=blobs&at=1000&seconds=60"
fails "a limit for waiting" ": $registry: no progress for 1 s" rl pull "$registry/app:1"
fault "kind=digest&match=blobs"
fails "docker.io by its mirror, which is damaged" "wrong digest" rl pull docker.io/app:1
fault ""
daemon_stop
daemon_start
rl pull "$registry/app:1" >/dev/null

# Everybody at once.
for i in 1 2 3 4 5 6; do
	(
		for _ in 1 2 3; do
			rl pull "$registry/app:1" >/dev/null 2>&1 || echo "pull $i"
			rl load "$rt_dir/busybox.tar" >/dev/null 2>&1 || echo "load $i"
			rl rmi "$registry/app:1" >/dev/null 2>&1 || true
			rl images >/dev/null || echo "images $i"
		done
	) >"$rt_dir/many.$i" 2>&1 &
	extra=$!
	many="${many:-} $extra"
done
for pid in $many; do wait "$pid"; done
is "pulls, loads and removals at the same time all succeed" "" cat "$rt_dir"/many.*
has "the store is well afterwards" sha256: rl pull "$registry/app:1"
container after '{"image":{"image":"'"$registry"'/app:1"}}' sh -c 'echo fine'
new_pod p >/dev/null
rl create p "$rt_dir/after.con" "$rt_dir/p.pod" >/dev/null && rl start after >/dev/null
until_true 5 exited after
is "a container of it works" 0 field .status.exitCode after

# /dev as a link to somewhere else (CVE-2026-41579).
ls -la /tmp >/dev/null
before=$(find /tmp -maxdepth 1 \( -type c -o -name 'null' -o -name pts -o -name shm -o -name ptmx \) | sort)
rl pull "$registry/app:evil" >/dev/null
container evil '{"image":{"image":"'"$registry"'/app:evil"}}' sh -c 'echo x >/dev/null; sleep 1'
rl create p "$rt_dir/evil.con" "$rt_dir/p.pod" >/dev/null 2>&1 && rl start evil >/dev/null 2>&1
is "an image whose /dev is a link changes nothing outside" "$before" \
	find /tmp -maxdepth 1 \( -type c -o -name 'null' -o -name pts -o -name shm -o -name ptmx \)
rl rmp --force p >/dev/null

fails "two daemons cannot have one root" "is in use by another runtime-lite" "$BUILD/bin/runtime-lite" --root="$lib" --state="$rt_dir/run2" \
	--listen="unix://$rt_dir/second.sock" --cgroup-parent="/$rt_name"
has "prune removes images that nothing uses" "image sha256:" rl prune
is "all of them" 0 layers
kill "${extra_pids[@]}"
extra_pids=()
check "nothing is left" nothing_left

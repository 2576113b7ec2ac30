#!/bin/bash
# demo.sh - start a whole node on a state directory of its own, run the example Pods and Service on it, show them working.
# DEMO=once takes everything down by itself and succeeds only if all of it was seen to work and nothing was left behind.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ "$(id -u)" = 0 ] || { echo "demo: creating containers needs root; run it as root" >&2; exit 1; }
bin=$PWD/build/bin
once=${DEMO:-}
failures=0
pids=()
dir=$(mktemp -d /tmp/node-lite-demo.XXXXXX)
api=$dir/kubelet.sock
cri=unix://$dir/runtime.sock
name=nldemo
# TLS is served only where somebody could use it: OpenSSL takes more memory than the daemon.
tls=()
command -v kubectl >/dev/null && tls=(--api-address=127.0.0.1:26443)

bold= plain=
[ -t 1 ] && bold=$(printf '\033[1m') plain=$(printf '\033[0m')
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
seen() { printf '  ok: %s\n' "$*"; }
missed() { printf '  NOT SEEN: %s\n' "$*"; failures=$((failures + 1)); }
get() { curl -sf --max-time 5 --unix-socket "$api" "http://localhost$1"; }
# What `kubectl get pods -o wide` shows: the API's own table.
pods_table() {
	curl -sf --unix-socket "$api" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' \
		http://localhost/api/v1/namespaces/default/pods |
		jq -r '(.columnDefinitions | map(.name | ascii_upcase)), (.rows[].cells | map(tostring)) | .[0:7] | @tsv' |
		awk -F'\t' '{ printf "  %-8s %-7s %-10s %-10s %-6s %-14s %s\n", $1, $2, $3, $4, $5, $6, $7 }'
}
pods() { get /api/v1/namespaces/default/pods; }
ready() { pods | jq -e --arg pod "$1" 'any(.items[]; .metadata.name == $pod and any(.status.conditions[]?; .type == "Ready" and .status == "True"))' >/dev/null; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# wait_for SECONDS TEXT COMMAND...: with a progress line that is rewritten in place (one dot a second in a log).
wait_for() {
	local limit=$1 text=$2 start now frame=0
	shift 2
	start=$(milliseconds)
	until "$@" >/dev/null 2>&1; do
		now=$(milliseconds)
		if [ $((now - start)) -gt $((limit * 1000)) ]; then
			printf '\n'
			missed "$text (waited $limit s)"
			return 1
		fi
		if [ -t 1 ]; then
			frame=$((frame + 1))
			printf '\r  %c waiting: %s, %d.%d s ' "$(printf '%s' '|/-\' | cut -c$((frame % 4 + 1)))" "$text" \
				$(((now - start) / 1000)) $(((now - start) % 1000 / 100))
		elif [ $(((now - start) / 1000)) -gt $frame ]; then
			frame=$((frame + 1))
			printf '.'
		fi
		sleep 0.05
	done
	[ -t 1 ] && printf '\r\033[K'
	seen "$text after $(($(milliseconds) - start)) ms"
}

# A daemon gets a session of its own, so that Ctrl-C reaches this script only.
start_daemon() {
	local daemon=$1
	shift
	setsid "$bin/$daemon" "$@" >"$dir/$daemon.log" 2>&1 </dev/null &
	pids+=($!)
}

stop_daemons() {
	local pid
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${pids[@]}"; do
		for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
}

no_pods() { [ "$("$bin/runtime-lite" --listen="$cri" pods --quiet 2>/dev/null | wc -l)" -eq 0 ]; }

take_down() {
	trap '' INT TERM
	say "Taking it down"
	rm -f "$dir"/manifests/*.yaml
	[ -S "$dir/runtime.sock" ] && wait_for 60 "all pods are gone" no_pods
	[ -S "$dir/runtime.sock" ] && "$bin/runtime-lite" --listen="$cri" rmp --all --force >/dev/null 2>&1
	stop_daemons
	"$bin/proxy-lite" --table="$name" --cleanup >/dev/null 2>&1 || true
	"$bin/runtime-lite" --listen="$cri" --root="$dir/lib" --state="$dir/run" --bridge="$name" --cgroup-parent="/$name" \
		prune --network >/dev/null 2>&1 || true
	for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
		find "$hierarchy/$name" -depth -type d -exec rmdir {} + 2>/dev/null
	done
	[ -n "${forward_before:-}" ] && echo "$forward_before" >/proc/sys/net/ipv4/ip_forward
	umount "$dir" 2>/dev/null || umount -l "$dir" 2>/dev/null
	rmdir "$dir" 2>/dev/null
	look_for_rests
}

look_for_rests() {
	local rests=
	rests+=$(pgrep -af "$dir" | grep -v "^$$ ")
	rests+=$(grep -F "$dir" /proc/mounts)
	rests+=$(find /sys/fs/cgroup -maxdepth 3 -type d -name "$name*" 2>/dev/null)
	rests+=$(ip -o link | grep -F "$name")
	rests+=$(nft list tables 2>/dev/null | grep -F "$name")
	rests+=$([ -e "$dir" ] && echo "$dir")
	if [ -n "$rests" ]; then missed "nothing is left, but: $rests"; else seen "nothing is left: no process, mount, cgroup, link, table, file"; fi
}

finish() {
	take_down
	if [ "$failures" -eq 0 ]; then
		say "The demo worked."
		exit 0
	fi
	say "$failures of the things above were not seen."
	exit 1
}

start_node() {
	mount -t tmpfs -o size=512m,mode=0700 node-lite-demo "$dir" || exit 1
	mkdir -p "$dir"/{manifests,lib,run,kubelet,logs,links}
	forward_before=$(cat /proc/sys/net/ipv4/ip_forward)
	packaging/tools/make-demo-image.sh "$dir/web.tar" >/dev/null || exit 1
	start_daemon runtime-lite --root="$dir/lib" --state="$dir/run" --listen="$cri" --cgroup-parent="/$name" --bridge="$name" \
		--pod-cidr=10.87.0.0/16
	start_daemon kubelet-lite --pod-manifest-path="$dir/manifests" --root-dir="$dir/kubelet" --container-runtime-endpoint="$cri" \
		--pod-logs-dir="$dir/logs" --container-logs-dir="$dir/links" --cgroup-root="/$name" --api-socket="$api" \
		--service-cluster-ip-range=10.97.0.0/16 --healthz-port=20248 "${tls[@]}"
	start_daemon proxy-lite --api-socket="unix://$api" --table="$name" --admin-socket="$dir/proxy.sock" \
		--healthz-bind-address=127.0.0.1:20256 --metrics-bind-address=127.0.0.1:20249 --cluster-cidr=10.87.0.0/16
	wait_for 10 "the runtime answers" test -S "$dir/runtime.sock" || { cat "$dir"/*.log; finish; }
	wait_for 10 "the API answers" get /api/v1/namespaces || { cat "$dir"/*.log; finish; }
	"$bin/runtime-lite" --listen="$cri" load "$dir/web.tar" || missed "the image is loaded"
	"$bin/runtime-lite" --listen="$cri" images
}

apply_examples() {
	local start
	cp packaging/examples/web.yaml packaging/examples/web-service.yaml "$dir/manifests/"
	wait_for 60 "pod web-1 is ready (init container, two containers, probes)" ready web-1 || show_logs
	start=$(milliseconds)
	cp packaging/examples/web-2.yaml "$dir/manifests/"
	until [ "$(pods | jq -r '.items[] | select(.metadata.name == "web-2") | .status.phase')" = Running ]; do
		[ $(($(milliseconds) - start)) -lt 30000 ] || break
		sleep 0.005
	done
	printf '  pod web-2: %d ms from its manifest to Running\n' $(($(milliseconds) - start))
	wait_for 30 "pod web-2 is ready" ready web-2 || show_logs
}

show_logs() {
	tail -n 15 "$dir"/*.log
	get /api/v1/events | jq -r '.items[] | "\(.reason): \(.message)"' | tail -n 15
}

# both_answer ADDRESS: fetch until both pods have been seen.
both_answer() {
	local first= second= page i
	for i in $(seq 60); do
		page=$(curl -sf --max-time 3 "http://$1/")
		case $page in
		*web-1*) [ -n "$first" ] || echo "    $page"; first=1 ;;
		*web-2*) [ -n "$second" ] || echo "    $page"; second=1 ;;
		*) sleep 0.1 ;;
		esac
		[ -n "$first" ] && [ -n "$second" ] && return 0
	done
	return 1
}

memory_limit() {
	local id file
	id=$(pods | jq -r '.items[] | select(.metadata.name == "web-1") | .status.containerStatuses[] | select(.name == "web") | .containerID | sub(".*//"; "")')
	for file in memory.max memory.limit_in_bytes; do
		find /sys/fs/cgroup -path "*$id*" -name $file -exec cat {} + 2>/dev/null
	done | head -n 1
}

show_node() {
	local address service limit i total=0 pss
	say "Pods"
	pods_table
	"$bin/runtime-lite" --listen="$cri" ps | sed 's/^/  /'
	service=$(get /api/v1/namespaces/default/services/web | jq -r .spec.clusterIP)
	address=$(get /api/v1/nodes | jq -r '.items[0].status.addresses[] | select(.type == "InternalIP") | .address' | head -n 1)
	say "The page, through the Service's ClusterIP: curl http://$service/"
	both_answer "$service" && seen "both pods answer through the ClusterIP" || missed "both pods answer through the ClusterIP"
	say "The page, through the NodePort: curl http://$address:30080/"
	both_answer "$address:30080" && seen "both pods answer through the NodePort" || missed "both pods answer through the NodePort"
	say "Memory limit of container web as the kernel holds it (the manifest says 32Mi)"
	limit=$(memory_limit)
	[ "$limit" = 33554432 ] && seen "$limit bytes" || missed "33554432 bytes, but '$limit'"
	say "Memory of the daemons (PSS)"
	sync
	for i in 0 1 2; do
		pss=$(awk '/^Pss:/ { print $2 }' "/proc/${pids[$i]}/smaps_rollup")
		total=$((total + pss))
		printf '  %-14s %6d kB\n' "$(cat "/proc/${pids[$i]}/comm")" "$pss"
	done
	printf '  %-14s %6d kB\n' together $total
}

trap finish INT TERM
say "Starting the three daemons in $dir"
start_node
say "Applying packaging/examples/"
apply_examples
show_node
[ "$once" = once ] && finish

say "The node stays up. In another terminal, try:"
cat <<TEXT
  $bin/runtime-lite --listen=$cri pods
  $bin/runtime-lite --listen=$cri logs motd
  $bin/proxy-lite --admin-socket=$dir/proxy.sock dump
  curl http://$(get /api/v1/namespaces/default/services/web | jq -r .spec.clusterIP)/
  curl --unix-socket $api http://localhost/api/v1/namespaces/default/pods
  edit $dir/manifests/web-2.yaml, and see the pod follow
${tls:+  KUBECONFIG=$dir/kubelet/api/admin.kubeconfig kubectl get pods -o wide
}Logs of the daemons are in $dir/*.log. Ctrl-C here takes everything down.
TEXT
while :; do sleep 1; done

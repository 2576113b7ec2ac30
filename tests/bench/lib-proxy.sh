# lib-proxy.sh - the proxy part of run.sh: full sync and one change, against the real kube-proxy on the same objects.
# shellcheck shell=bash

# proxy_objects DIRECTORY SERVICES: Services with four endpoints each, as files of the fake API server.
proxy_objects() {
	mkdir -p "$1/services" "$1/endpointslices" "$1/nodes"
	cat >"$1/nodes/bench.json" <<NODE
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bench", "uid": "n"},
 "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.10"}]}}
NODE
	python3 - "$1" "$2" <<'PYTHON'
import json, sys
directory, count = sys.argv[1], int(sys.argv[2])
for i in range(count):
    name = "svc-%d" % i
    service = {"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "bench", "uid": "u%d" % i},
        "spec": {"type": "ClusterIP", "clusterIP": "10.%d.%d.%d" % (96 + (i >> 16), i >> 8 & 255, i & 255),
            "clusterIPs": ["10.%d.%d.%d" % (96 + (i >> 16), i >> 8 & 255, i & 255)], "ipFamilies": ["IPv4"],
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}]}}
    endpoints = [{"addresses": ["10.%d.%d.%d" % (128 + (k >> 16), k >> 8 & 255, k & 255)],
        "conditions": {"ready": True, "serving": True, "terminating": False}, "nodeName": "other"}
        for k in range(i * 4, i * 4 + 4)]
    slice_ = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name + "-x", "namespace": "bench", "uid": "s%d" % i,
            "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "http", "protocol": "TCP", "port": 8080}]}
    json.dump(service, open("%s/services/%s.json" % (directory, name), "w"))
    json.dump(slice_, open("%s/endpointslices/%s.json" % (directory, name), "w"))
PYTHON
}

# proxy_run ours|peer SERVICES DIRECTORY: one program in a network namespace of its own, on the same objects behind the same
# API server; prints "full_ms", "change_ms" and "pss_kb". Both say by themselves how long a sync took: ours in its metrics
# (kube-proxy's names), kube-proxy in its log, where the first sync of IPv4 is the full one.
proxy_run() {
	local who=$1 services=$2 dir=$3 net api pid i
	unshare -n sleep 100000 &
	net=$!
	sleep 0.2
	enter="nsenter --net=/proc/$net/ns/net"
	$enter ip link set lo up
	$enter ip link add uplink0 type veth peer name uplink1
	$enter ip addr add 192.0.2.10/24 dev uplink0
	$enter ip link set uplink0 up
	$enter ip link set uplink1 up
	$enter ip route add default via 192.0.2.1
	if [ "$who" = ours ]; then proxy_start_ours "$dir"; else proxy_start_peer "$dir"; fi
	for i in 1 2 3 4 5; do
		sleep "${BENCH_CHANGE_PAUSE:-2}"
		proxy_settled "$who" "$dir"
		sed -E "s/\"10\.128\.0\.(0|[0-9]{3})\"/\"10.128.0.$((100 + i))\"/" "$dir/endpointslices/svc-0.json" >"$dir/new"
		mv "$dir/new" "$dir/endpointslices/svc-0.json"
	done
	sleep 2
	proxy_settled "$who" "$dir"
	"proxy_times_$who" "$dir"
	printf 'pss_kb\t%s\n' "$(awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup")"
	kill "$pid" "$api" "$net"
	wait "$pid" "$api" "$net" 2>/dev/null
}

proxy_start_ours() {
	rm -f "$1/api.sock"
	"$BUILD/tests/fakes/kube_api" "$1/api.sock" "$1" >"$1/api.log" 2>&1 &
	api=$!
	until_true 60 test -S "$1/api.sock"
	$enter "$BUILD/bin/proxy-lite" --api-socket="unix://$1/api.sock" --admin-socket="$1/admin.sock" --hostname-override=bench \
		--healthz-bind-address=127.0.0.1:20266 --metrics-bind-address=127.0.0.1:20269 >"$1/proxy-lite.log" 2>&1 &
	pid=$!
	until_true 120 proxy_has_elements
}
proxy_metrics() { $enter curl -s http://127.0.0.1:20269/metrics; }
proxy_has_elements() { $enter nft list map inet node_lite frontend4 2>/dev/null | grep -q "10.96.0.1 "; }
# sum and count of the partial syncs tell the mean time of a change.
proxy_times_ours() {
	proxy_metrics | awk '
		/^kubeproxy_sync_(full|partial)_proxy_rules_duration_seconds_(sum|count)/ {
			split($1, part, "{"); name = part[1]; sub(/^kubeproxy_sync_/, "", name); value[name] += $2 }
		END {
			n = value["full_proxy_rules_duration_seconds_count"]
			if (n) printf "full_ms\t%.3f\n", value["full_proxy_rules_duration_seconds_sum"] * 1000 / n
			n = value["partial_proxy_rules_duration_seconds_count"]
			if (n) printf "change_ms\t%.3f\n", value["partial_proxy_rules_duration_seconds_sum"] * 1000 / n
		}'
}

proxy_start_peer() {
	$enter "$BUILD/tests/fakes/kube_api" 127.0.0.1:18080 "$1" >"$1/api.log" 2>&1 &
	api=$!
	cat >"$1/kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:18080"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
CONFIG
	cat >"$1/config.yaml" <<CONFIG
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.128.0.0/10
hostnameOverride: bench
clientConnection: {kubeconfig: "$1/kubeconfig"}
conntrack: {maxPerCore: 0}
featureGates: {WatchListClient: false}
healthzBindAddress: 127.0.0.1:20266
metricsBindAddress: 127.0.0.1:20269
CONFIG
	until_true 60 $enter curl -sf "http://127.0.0.1:18080/api/v1/services?limit=1"
	$enter "$kube_proxy" --config="$1/config.yaml" --v=2 >"$1/kube-proxy.log" 2>&1 &
	pid=$!
	until_true 300 grep -q 'SyncProxyRules complete.*IPv4' "$1/kube-proxy.log"
}
# As many syncs finished as were begun.
proxy_settled() {
	[ "$1" = peer ] || return 0
	until_true 120 proxy_peer_settled "$2"
}
proxy_peer_settled() {
	[ "$(grep -c 'Syncing nftables rules' "$1/kube-proxy.log")" = "$(grep -c 'SyncProxyRules complete' "$1/kube-proxy.log")" ]
}
proxy_times_peer() {
	sed -n 's/.*SyncProxyRules complete" ipFamily="IPv4" elapsed="\(.*\)"/\1/p' "$1/kube-proxy.log" | awk '
		function ms(text, total, part) {
			while (match(text, /^[0-9.]+(ms|µs|us|m|s)/)) {
				part = substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1)
				if (part ~ /ms$/) total += part + 0; else if (part ~ /(µs|us)$/) total += (part + 0) / 1000
				else if (part ~ /m$/) total += (part + 0) * 60000; else total += (part + 0) * 1000
			}
			return total
		}
		NR == 1 { printf "full_ms\t%.3f\n", ms($0) }
		NR > 1 { sum += ms($0); n++ }
		END { if (n) printf "change_ms\t%.3f\n", sum / n }'
}

bench_proxy() {
	local services dir try
	kube_proxy=$BUILD/gotools/kube-proxy
	if [ ! -x "$kube_proxy" ] && command -v go >/dev/null; then
		(cd tests/conformance/kubernetes && go build -o "$kube_proxy" k8s.io/kubernetes/cmd/kube-proxy)
	fi
	for services in ${BENCH_SERVICES:-1000 10000}; do
		dir=$node_dir/proxy-$services
		proxy_objects "$dir" "$services"
		for try in $(seq "$tries"); do
			proxy_run ours "$services" "$dir" >"$dir/ours.$try"
			[ -x "$kube_proxy" ] && proxy_run peer "$services" "$dir" >"$dir/peer.$try"
		done
		for metric in full_ms change_ms pss_kb; do
			row "proxy.$services.$metric" "$(proxy_value ours "$metric")" "$(proxy_value peer "$metric")"
		done
	done
}
proxy_value() { cat "$dir/$1".* 2>/dev/null | awk -v m="$2" '$1 == m { print $2 }' | median; }

#!/bin/bash
# proxy_node.sh - what proxy-lite makes of its own node: health-check ports, the Node object, how pods are told from others,
# and packets that conntrack calls invalid.
set -u
. tests/integration/lib-proxy.sh
proxy_enter "$@"
node_network
for p in a b c d; do serve $p tcp:8080; done
api_start
web='{"name":"http","protocol":"TCP","port":80}'
ends='{"name":"http","protocol":"TCP","port":8080}'
node() { # node ZONE [MORE]
	mkdir -p "$dir/api/nodes"
	cat >"$dir/api/nodes/.new" <<-JSON
		{"apiVersion":"v1","kind":"Node","metadata":{"name":"node","labels":{"topology.kubernetes.io/zone":"$1"}${3:-}},
		 "spec":{"podCIDRs":["10.88.0.0/16","fd00:88::/64"]${2:-}}}
	JSON
	mv "$dir/api/nodes/.new" "$dir/api/nodes/node.json"
}
balanced='{"loadBalancer":{"ingress":[{"ip":"198.51.100.7"}]}}'
lb() { service lb LoadBalancer 10.96.0.1 '{"name":"http","protocol":"TCP","port":80,"nodePort":30070}' ',"externalTrafficPolicy":"Local"'"$1" "$balanced"; }
lb ',"healthCheckNodePort":32000'
slice lb-4 lb "$ends" 10.88.0.11 10.88.0.12 10.88.0.13,other
proxy_start
check "it syncs" soon 5 synced

# ---- health-check node ports ----
code() { curl -s -o /dev/null -w '%{http_code}' --max-time 3 "$1"; }
H=http://192.0.2.2:32000
check "health-check port answers 200" soon 3 gives 200 code $H/healthz
is "... counts local endpoints" "default lb 2 true" sh -c "curl -s $H/ | jq -r '[.service.namespace, .service.name, .localEndpoints, .serviceProxyHealthy] | join(\" \")'"
is "... and gives a weight" 2 sh -c "curl -si $H/ | tr -d '\r' | awk -F': ' 'tolower(\$1) == \"x-load-balancing-endpoint-weight\" { print \$2 }'"
is "... to outsiders" 200 at outside curl -s -o /dev/null -w '%{http_code}' --max-time 3 $H/
slice lb-4 lb "$ends" 10.88.0.11,other 10.88.0.12,terminating 10.88.0.13,notready
check "without a ready local endpoint it answers 503" soon 3 gives 503 code $H/
slice lb-4 lb "$ends" 10.88.0.11
check "and 200 again" soon 3 gives 200 code $H/
lb ',"healthCheckNodePort":32001'
check "another port" soon 3 gives 200 code http://192.0.2.2:32001/
is "... the old one is closed" 000 code $H/
lb ',"healthCheckNodePort":10249'
check "a taken port is reported" soon 3 sh -c "'$BUILD/bin/proxy-lite' --admin-socket='$dir/admin.sock' dump | grep -q 'health check of default/lb'"
lb ''
check "no port any more" soon 3 sh -c "! '$BUILD/bin/proxy-lite' --admin-socket='$dir/admin.sock' dump | grep -q 'health check of'"

# ---- the Node object ----
service zoned ClusterIP 10.96.0.2 "$web"
put endpointslices zoned-4 <<JSON
{"addressType":"IPv4","metadata":{"namespace":"default","name":"zoned-4","labels":{"kubernetes.io/service-name":"zoned"}},"ports":[$ends],
 "endpoints":[{"addresses":["10.88.0.11"],"hints":{"forZones":[{"name":"z1"}]}},{"addresses":["10.88.0.12"],"hints":{"forZones":[{"name":"z2"}]}}]}
JSON
check "without a Node hints do not matter" soon 3 gives "a b" who d tcp 10.96.0.2 80 30
node z1
check "hints for our zone" soon 3 gives a who d tcp 10.96.0.2 80 20
node z2
check "another zone" soon 3 gives b who d tcp 10.96.0.2 80 20
node z3
check "a zone without endpoints: all are used" soon 3 gives "a b" who d tcp 10.96.0.2 80 30
node z1 ',"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]'
check "a node that is about to go: healthz answers 503" soon 3 gives 503 code http://127.0.0.1:10256/healthz
is "... livez 200" 200 code http://127.0.0.1:10256/livez
is "... and it says so" false sh -c "curl -s http://127.0.0.1:10256/healthz | jq .nodeEligible"
node z1
check "a node that stays after all" soon 3 gives 200 code http://127.0.0.1:10256/healthz
node z1 "" ',"deletionTimestamp":"2026-01-01T00:00:00Z"'
check "a node that is deleted" soon 3 gives 503 code http://127.0.0.1:10256/healthz
node z1
soon 3 gives 200 code http://127.0.0.1:10256/healthz
proxy_stop

# ---- who is a pod ----
at outside ip route add 10.96.0.0/16 via 192.0.2.2 2>/dev/null
modes() { # modes NAME OPTION...: kept for pods, masqueraded for the outside
	proxy_start --cluster-cidr= "${@:2}"
	soon 5 synced
	check "$1: a pod keeps its address" soon 3 gives 10.88.0.14 seen d tcp 10.96.0.2 80 5
	check "$1: outside is masqueraded" soon 3 gives 10.88.0.1 seen outside tcp 10.96.0.2 80 5
	proxy_stop
}
modes "NodeCIDR" --detect-local-mode=NodeCIDR
modes "BridgeInterface" --detect-local-mode=BridgeInterface --pod-bridge-interface=pods
modes "InterfaceNamePrefix" --detect-local-mode=InterfaceNamePrefix --pod-interface-name-prefix=po
proxy_start --cluster-cidr= --masquerade-all
soon 5 synced
check "masquerade-all: a pod too" soon 3 gives 10.88.0.1 seen d tcp 10.96.0.2 80 5
nft list table inet nl_test >"$dir/listing"
is "its listing loads elsewhere" same unshare -n sh -c "nft -f $dir/listing && nft list table inet nl_test | cmp -s - $dir/listing && echo same"
proxy_stop
proxy_start --cluster-cidr= --detect-local-mode=InterfaceNamePrefix --pod-interface-name-prefix=po
soon 5 synced
nft list table inet nl_test >"$dir/listing"
is "that of an interface prefix too" same unshare -n sh -c "nft -f $dir/listing && nft list table inet nl_test | cmp -s - $dir/listing && echo same"
proxy_stop
refuses() { # refuses NAME TEXT OPTION...
	local got
	got=$(timeout 5 "$BUILD/bin/proxy-lite" --table=nl_other --admin-socket= --healthz-bind-address= --metrics-bind-address= "${@:3}" 2>&1)
	case $got in *"$2"*) ok "$1" ;; *) not_ok "$1: $got" ;; esac
}
refuses "unknown mode" '--detect-local-mode: "Magic" is not ClusterCIDR' --detect-local-mode=Magic
refuses "no bridge named" '--pod-bridge-interface: "" is not the name of an interface' --detect-local-mode=BridgeInterface
refuses "bad CIDR" '--cluster-cidr: "10.0.0.0" is not a CIDR' --cluster-cidr=10.0.0.0
refuses "two ranges of a family" 'second range of its family' --cluster-cidr=10.0.0.0/8,11.0.0.0/8
refuses "bad node port addresses" '--nodeport-addresses: "all" is neither' --nodeport-addresses=all
refuses "bad mark" '--masquerade-bit: 32' --masquerade-bit=32
refuses "bad table" '--table: "a b" is not' '--table=a b'
refuses "bad level" '--log-level: "loud"' --log-level=loud
refuses "bad socket" '--api-socket: "127.0.0.1:80" is not a Unix socket' --api-socket=127.0.0.1:80
refuses "bad command" '"frob" is not a command' frob
refuses "explain without address" 'explain needs one ADDRESS:PORT' explain
refuses "unknown flag" 'frob' --frob

# ---- node ports on chosen addresses ----
service np NodePort 10.96.0.3 '{"name":"http","protocol":"TCP","port":80,"nodePort":30080}'
slice np-4 np "$ends" 10.88.0.11
proxy_start --nodeport-addresses=10.88.0.0/16,fd00::/8
soon 5 synced
check "node port on a chosen address" soon 3 gives a who d tcp 10.88.0.1 30080
is "... and not on another" refused who node tcp 192.0.2.2 30080
ip addr add 10.88.99.9/32 dev pods
check "an address that comes is served" soon 3 gives a who d tcp 10.88.99.9 30080
ip addr del 10.88.99.9/32 dev pods
check "one that goes is not" soon 3 sh -c '! nft list set inet nl_test nodeip4 | grep -q 10.88.99.9'
proxy_stop

# ---- invalid packets ----
service boom ClusterIP 10.96.0.4 "$web"
slice boom-4 boom '{"name":"http","protocol":"TCP","port":9090}' 10.88.0.11
spawn a "$fakes/net_peer" boom 9090
at d nft -f - <<'N'
table ip watch {
	chain input {
		type filter hook input priority 0; policy accept;
		ip saddr 10.88.0.11 counter
	}
}
N
proxy_start
soon 5 synced
check "a server that sends a stray segment: the connection lives" soon 3 gives ok ask d tcp 10.96.0.4 80
is "... and the stray one did not reach the client" 1 sh -c "nsenter --net=/proc/${ns[d]}/ns/net nft list table ip watch | grep -c 'packets 0 '"
grep -E 'ERROR: |runtime error|AddressSanitizer|Assertion| error: ' "$dir/proxy.log" && not_ok "nothing bad in the log"
exit ${failed:-0}

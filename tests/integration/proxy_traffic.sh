#!/bin/bash
# proxy_traffic.sh - real traffic through proxy-lite's table, between pods, the node and a client outside.
set -u
. tests/integration/lib-proxy.sh
proxy_enter "$@"
node_network
for p in a b c d; do serve $p tcp:8080 udp:5353 tcp:8443; done
api_start

web='{"name":"http","protocol":"TCP","port":80}'
ends='{"name":"http","protocol":"TCP","port":8080}'
service web ClusterIP "10.96.0.1 fd00:96::1" "$web"
slice web-4 web "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
slice web-6 web "$ends" fd00:88::11 fd00:88::12
service np NodePort "10.96.0.2 fd00:96::2" '{"name":"http","protocol":"TCP","port":80,"nodePort":30080},{"name":"dns","protocol":"UDP","port":53,"nodePort":30053},{"name":"tls","protocol":"TCP","port":443}'
np_ends='{"name":"http","protocol":"TCP","port":8080},{"name":"dns","protocol":"UDP","port":5353},{"name":"tls","protocol":"TCP","port":8443}'
slice np-4 np "$np_ends" 10.88.0.12 10.88.0.13
slice np-6 np "$np_ends" fd00:88::12 fd00:88::13
service none NodePort "10.96.0.3 fd00:96::3" '{"name":"http","protocol":"TCP","port":80,"nodePort":30090},{"name":"dns","protocol":"UDP","port":53}'
service one ClusterIP 10.96.0.4 "$web"
slice one-4 one "$ends" 10.88.0.11
proxy_start
check "it syncs" soon 5 synced

is "ClusterIP from a pod reaches all endpoints" "a b c" who d tcp 10.96.0.1 80 60
is "ClusterIP from the node" "a b c" who node tcp 10.96.0.1 80 60
is "ClusterIP over IPv6 from a pod" "a b" who d tcp fd00:96::1 80 40
is "ClusterIP over IPv6 from the node" "a b" who node tcp fd00:96::1 80 40
is "a pod's address is kept on the way to a ClusterIP" "10.88.0.14" seen d tcp 10.96.0.1 80 10
is "another port of a Service" "b c" who d tcp 10.96.0.2 443 30
is "UDP to a ClusterIP" "b c" who d udp 10.96.0.2 53 40
is "UDP to a ClusterIP over IPv6" "b c" who d udp fd00:96::2 53 40
is "node port from outside" "b c" who outside tcp 192.0.2.2 30080 40
is "node port from outside over IPv6" "b c" who outside tcp fd00:2::2 30080 40
is "UDP node port from outside" "b c" who outside udp 192.0.2.2 30053 40
is "node port from the node itself" "b c" who node tcp 192.0.2.2 30080 30
is "node port from a pod" "b c" who d tcp 192.0.2.2 30080 30
is "node port from outside is masqueraded" "10.88.0.1" seen outside tcp 192.0.2.2 30080 10
is "node port over IPv6 from outside is masqueraded" "fd00:88::1" seen outside tcp fd00:2::2 30080 10
is "node ports are only on the chosen address" refused who node tcp 10.88.0.1 30080
is "never on loopback" refused who node tcp 127.0.0.1 30080
at outside ip route add 10.96.0.0/16 via 192.0.2.2 2>/dev/null
is "ClusterIP from outside is masqueraded" "10.88.0.1" seen outside tcp 10.96.0.1 80 10
is "a pod reaches itself, by another address" "a 10.88.0.1" ask a tcp 10.96.0.4 80
is "no endpoint: a pod is refused" refused who d tcp 10.96.0.3 80
is "no endpoint: the node is refused" refused who node tcp 10.96.0.3 80
is "no endpoint: UDP is refused" refused who d udp 10.96.0.3 53
# A local sender hears of it at once, from send() itself.
is "no endpoint: UDP from the node is refused" "error: Operation not permitted" ask node udp 10.96.0.3 53
is "no endpoint: outside is refused on the node port" refused who outside tcp 192.0.2.2 30090
is "no endpoint: the node is refused on the node port" refused who node tcp 192.0.2.2 30090
is "no endpoint: refused over IPv6" refused who d tcp fd00:96::3 80
is "an unknown port is not touched" "timeout" who d tcp 10.96.0.1 81 1 300

counts=$(ask d tcp 10.96.0.1 80 1500 | cut -d' ' -f1 | sort | uniq -c | awk '{ d = $1 - 500; x += d * d / 500 } END { print (NR == 3 && x < 20) ? "even" : "uneven " x }')
is "balance is even (chi-square over 1500 connections)" even echo "$counts"

slice one-4 one "$ends" 10.88.0.12
check "an endpoint replaced" soon 2 gives b who d tcp 10.96.0.4 80
slice one-4 one "$ends" 10.88.0.12 10.88.0.13
check "an endpoint added" soon 2 gives "b c" who d tcp 10.96.0.4 80 20
slice one-4 one "$ends" 10.88.0.12,notready 10.88.0.13
check "an endpoint not ready is left out" soon 2 gives "c" who d tcp 10.96.0.4 80 20
slice one-4 one "$ends" 10.88.0.12,notready 10.88.0.13,terminating
check "one that terminates serves while there is no other" soon 2 gives "c" who d tcp 10.96.0.4 80 20
slice one-4 one "$ends" 10.88.0.12 10.88.0.13,terminating
check "and not when there is" soon 2 gives "b" who d tcp 10.96.0.4 80 20
slice one-4b one "$ends" 10.88.0.11 10.88.0.12
check "a second slice adds to it" soon 2 gives "a b" who d tcp 10.96.0.4 80 20
gone endpointslices one-4b
gone endpointslices one-4
check "without slices it refuses" soon 2 gives refused who d tcp 10.96.0.4 80
gone services one
check "a deleted Service is not touched" soon 2 gives timeout who d tcp 10.96.0.4 80 1 200
service local NodePort 10.96.0.5 '{"name":"http","protocol":"TCP","port":80,"nodePort":30081}' ',"externalTrafficPolicy":"Local"'
slice local-4 local "$ends" 10.88.0.11 10.88.0.12,other
check "external policy Local: outside gets the local endpoint" soon 2 gives a who outside tcp 192.0.2.2 30081 20
is "... and its address is seen" "192.0.2.1" seen outside tcp 192.0.2.2 30081 5
is "... pods get all endpoints" "a b" who d tcp 192.0.2.2 30081 30
is "... the node gets all endpoints" "a b" who node tcp 192.0.2.2 30081 30
is "... the ClusterIP has all endpoints" "a b" who d tcp 10.96.0.5 80 30
slice local-4 local "$ends" 10.88.0.11,other 10.88.0.12,other
check "... without a local endpoint outside is dropped" soon 2 gives timeout who outside tcp 192.0.2.2 30081 1 300
is "... and pods still get all" "a b" who d tcp 192.0.2.2 30081 30
service local NodePort 10.96.0.5 '{"name":"http","protocol":"TCP","port":80,"nodePort":30081}' ',"internalTrafficPolicy":"Local"'
check "internal policy Local without a local endpoint is dropped" soon 2 gives timeout who d tcp 10.96.0.5 80 1 300
slice local-4 local "$ends" 10.88.0.11 10.88.0.12,other
check "internal policy Local with one" soon 2 gives a who d tcp 10.96.0.5 80 20
is "... the node port has all" "a b" who outside tcp 192.0.2.2 30081 20

service ext ClusterIP "10.96.0.6 fd00:96::6" "$web" ',"externalIPs":["198.51.100.5","fd00:ee::5"]'
slice ext-4 ext "$ends" 10.88.0.11 10.88.0.12
slice ext-6 ext "$ends" fd00:88::11
check "external address from outside" soon 2 gives "a b" who outside tcp 198.51.100.5 80 20
is "... is masqueraded" "10.88.0.1" seen outside tcp 198.51.100.5 80 5
is "external address over IPv6" a who outside tcp fd00:ee::5 80 5
is "external address from a pod" "a b" who d tcp 198.51.100.5 80 20
is "external address from the node" "a b" who node tcp 198.51.100.5 80 20
balanced='{"loadBalancer":{"ingress":[{"ip":"198.51.100.7"},{"ip":"198.51.100.8","ipMode":"Proxy"},{"ip":"fd00:ee::7"},{"hostname":"x"}]}}'
service lb LoadBalancer "10.96.0.7 fd00:96::7" '{"name":"http","protocol":"TCP","port":80,"nodePort":30070}' '' "$balanced"
slice lb-4 lb "$ends" 10.88.0.11 10.88.0.12
slice lb-6 lb "$ends" fd00:88::11
check "load balancer's address from outside" soon 2 gives "a b" who outside tcp 198.51.100.7 80 20
is "... from a pod" "a b" who d tcp 198.51.100.7 80 20
is "ipMode Proxy: not here" timeout who outside tcp 198.51.100.8 80 1 300
ranges=',"loadBalancerSourceRanges":["203.0.113.0/24"," 192.0.2.0/25 ","192.0.2.0/24","10.88.0.12/32","fd00:2::/64"]'
service lb LoadBalancer "10.96.0.7 fd00:96::7" '{"name":"http","protocol":"TCP","port":80,"nodePort":30070}' "$ranges" "$balanced"
check "source ranges: a pod that is not in them is dropped" soon 2 gives timeout who d tcp 198.51.100.7 80 1 300
is "... a pod that is in them" "a b" who b tcp 198.51.100.7 80 20
is "... outside, in them" "a b" who outside tcp 198.51.100.7 80 20
is "... outside over IPv6, in them" a who outside tcp fd00:ee::7 80 5
is "... the ClusterIP is open" "a b" who d tcp 10.96.0.7 80 20
is "... the node port is open" "a b" who d tcp 192.0.2.2 30070 20
nft list table inet nl_test >"$dir/listing"
is "... and nft's listing loads elsewhere" same unshare -n sh -c "nft -f $dir/listing && nft list table inet nl_test | cmp -s - $dir/listing && echo same"
service lb LoadBalancer "10.96.0.7 fd00:96::7" '{"name":"http","protocol":"TCP","port":80,"nodePort":30070}' ',"loadBalancerSourceRanges":["203.0.113.0/24"]' "$balanced"
check "source ranges: outside, not in them, is dropped" soon 2 gives timeout who outside tcp 198.51.100.7 80 1 300
is "... and the node" timeout who node tcp 198.51.100.7 80 1 300
is "... and IPv6, of which there is no range" timeout who outside tcp fd00:ee::7 80 1 300
service lb LoadBalancer "10.96.0.7 fd00:96::7" '{"name":"http","protocol":"TCP","port":80,"nodePort":30070}' '' "$balanced"
check "source ranges taken away: open again" soon 2 gives "a b" who outside tcp 198.51.100.7 80 20
service lb LoadBalancer "10.96.0.7 fd00:96::7" '{"name":"http","protocol":"TCP","port":80,"nodePort":30070}' ',"externalTrafficPolicy":"Local"' "$balanced"
check "load balancer with policy Local keeps the client's address" soon 2 gives "192.0.2.1" seen outside tcp 198.51.100.7 80 5
slice lb-4 lb "$ends" 10.88.0.11,other 10.88.0.12,other
check "... without a local endpoint: dropped" soon 2 gives timeout who outside tcp 198.51.100.7 80 1 300
is "... but pods get all" "a b" who d tcp 198.51.100.7 80 20
is "... with their own address" "10.88.0.14" seen d tcp 198.51.100.7 80 5
grep -E 'ERROR|runtime error|AddressSanitizer' "$dir/proxy.log" && not_ok "nothing bad in the log"
exit ${failed:-0}

#!/bin/bash
# proxy_affinity.sh - session affinity through proxy-lite's table: who stays, who moves, and what survives.
set -u
. tests/integration/lib-proxy.sh
proxy_enter "$@"
node_network
for p in a b c d; do serve $p tcp:8080 udp:5353; done
api_start
ends='{"name":"http","protocol":"TCP","port":8080},{"name":"dns","protocol":"UDP","port":5353}'
sticky=',"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":600}}'
short=',"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":1}}'
ports='{"name":"http","protocol":"TCP","port":80,"nodePort":30080},{"name":"dns","protocol":"UDP","port":53,"nodePort":30053}'
service pin NodePort "10.96.0.1 fd00:96::1" "$ports" "$sticky"
slice pin-4 pin "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
slice pin-6 pin "$ends" fd00:88::11 fd00:88::12 fd00:88::13
service local NodePort 10.96.0.2 '{"name":"http","protocol":"TCP","port":80,"nodePort":30081}' "$sticky"',"externalTrafficPolicy":"Local"'
slice local-4 local "$ends" 10.88.0.11 10.88.0.12 10.88.0.13,other
service short ClusterIP 10.96.0.3 '{"name":"http","protocol":"TCP","port":80}' "$short"
slice short-4 short "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
proxy_start
check "it syncs" soon 5 synced

# Twenty addresses on a pod are twenty clients.
for i in $(seq 101 120); do
	at d ip addr add 10.88.1.$i/16 dev eth0
	at d ip addr add fd00:88::1:$i/64 dev eth0 nodad
done
# ask_as SOURCE PROTOCOL ADDRESS PORT [COUNT]: by a route that names the source
ask_as() {
	local family=-4
	case $3 in *:*) family=-6 ;; esac
	at d ip $family route replace "$3" via "$(if [ $family = -4 ]; then echo 10.88.0.1; else echo fd00:88::1; fi)" src "$1"
	at d ip $family route flush cache
	ask d "$2" "$3" "$4" "${5:-1}" | cut -d' ' -f1 | sort -u | tr '\n' ' ' | sed 's/ $//'
}
map4() { for i in $(seq 101 120); do echo "$i $(ask_as 10.88.1.$i tcp 10.96.0.1 80 "${1:-1}")"; done; }
map4 3 >"$dir/first"
is "each of twenty clients stays with one endpoint" 20 grep -c '^[0-9]* [abc]$' "$dir/first"
is "and all endpoints are used" "a b c" sh -c "cut -d' ' -f2 '$dir/first' | sort -u | tr '\n' ' ' | sed 's/ $//'"
is "the next time too" "$(cat "$dir/first")" map4
is "UDP stays" 1 sh -c "echo '$(ask_as 10.88.1.101 udp 10.96.0.1 53 20)' | wc -w"
is "IPv6 stays" 1 sh -c "echo '$(ask_as fd00:88::1:101 tcp fd00:96::1 80 20)' | wc -w"
is "a node port from outside stays" 1 sh -c "echo '$(who outside tcp 192.0.2.2 30080 20)' | wc -w"
is "a UDP node port from outside stays" 1 sh -c "echo '$(who outside udp 192.0.2.2 30053 20)' | wc -w"
is "the node itself stays" 1 sh -c "echo '$(who node tcp 10.96.0.1 80 20)' | wc -w"
is "a node port over IPv6 stays" 1 sh -c "echo '$(who outside tcp fd00:2::2 30080 20)' | wc -w"
is "it is masqueraded each time" "10.88.0.1" seen outside tcp 192.0.2.2 30080 10
is "policy Local from outside stays" 1 sh -c "echo '$(who outside tcp 192.0.2.2 30081 20)' | wc -w"
is "... with the client's address" "192.0.2.1" seen outside tcp 192.0.2.2 30081 10
is "policy Local from a pod stays" 1 sh -c "echo '$(who d tcp 192.0.2.2 30081 20)' | wc -w"

nft list table inet nl_test >"$dir/listing"
check "nft's listing with pinned clients loads elsewhere" unshare -n nft -f "$dir/listing"

proxy_stop
is "pins last while it is stopped" "$(cat "$dir/first")" map4
nft monitor >"$dir/monitor" 2>/dev/null &
monitor_pid=$!
sleep 0.2
proxy_start
soon 5 synced
sleep 0.3
kill $monitor_pid
is "a restart writes nothing" "" cat "$dir/monitor"
is "pins outlive a restart" "$(cat "$dir/first")" map4

# An endpoint goes: only its clients move.
slice pin-4 pin "$ends" 10.88.0.11 10.88.0.13
sleep 0.3
map4 2 >"$dir/second"
is "without endpoint b nobody is with b" 0 grep -c b "$dir/second"
is "clients of a and c stay where they were" "$(grep -v b "$dir/first")" sh -c "grep -F -x -f '$dir/first' '$dir/second'"
slice pin-4 pin "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
sleep 0.3
is "an endpoint that comes moves nobody" "$(cat "$dir/second")" map4
for i in $(seq 30); do slice pin-4 pin "$ends" 10.88.0.11 $([ $((i % 2)) = 0 ] && echo 10.88.0.12) 10.88.0.13; done
sleep 0.5
is "thirty changes of another endpoint move nobody" "$(cat "$dir/second")" map4
service other ClusterIP 10.96.0.9 '{"name":"http","protocol":"TCP","port":80}'
sleep 0.3
is "another Service moves nobody" "$(cat "$dir/second")" map4

# A time-out of a second.
ask d tcp 10.96.0.3 80 >/dev/null
spread=$(for _ in $(seq 8); do echo "$(who d tcp 10.96.0.3 80)"; sleep 1.6; done | sort -u | wc -l)
check "after the time-out a client is drawn anew" test "$spread" -gt 1
service pin NodePort "10.96.0.1 fd00:96::1" "$ports"
check "affinity off: all endpoints for one client" soon 3 gives "a b c" who d tcp 10.96.0.1 80 40
service pin NodePort "10.96.0.1 fd00:96::1" "$ports" "$sticky"
one() { [ "$(who d tcp 10.96.0.1 80 20 | wc -w)" = 1 ]; }
check "affinity on again" soon 3 one
check "dump tells of it" sh -c "'$BUILD/bin/proxy-lite' --admin-socket='$dir/admin.sock' dump | grep -q '10.96.0.1:80/TCP .*stays for 600 s'"
grep -E 'ERROR: |runtime error|AddressSanitizer|Assertion| error: ' "$dir/proxy.log" && not_ok "nothing bad in the log"
exit ${failed:-0}

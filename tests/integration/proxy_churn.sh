#!/bin/bash
# proxy_churn.sh - connections through Services while others, and they themselves, change all the time, the daemon is
# restarted and killed, and somebody else edits nftables: no connection is lost.
set -u
. tests/integration/lib-proxy.sh
proxy_enter "$@"
node_network
for p in a b c d; do serve $p tcp:8080 udp:5353; done
api_start
ends='{"name":"http","protocol":"TCP","port":8080},{"name":"dns","protocol":"UDP","port":5353}'
ports='{"name":"http","protocol":"TCP","port":80,"nodePort":PORT},{"name":"dns","protocol":"UDP","port":53}'
sticky=',"sessionAffinity":"ClientIP"'
service still NodePort "10.96.0.1 fd00:96::1" "${ports/PORT/30001}"
slice still-4 still "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
slice still-6 still "$ends" fd00:88::11
service moving NodePort 10.96.0.2 "${ports/PORT/30002}"
slice moving-4 moving "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
service pinned NodePort 10.96.0.3 "${ports/PORT/30003}" "$sticky"
slice pinned-4 pinned "$ends" 10.88.0.11 10.88.0.12 10.88.0.13
for i in $(seq 200); do service "other-$i" ClusterIP "10.97.0.$i" '{"name":"http","protocol":"TCP","port":80}'; done
proxy_start --log-level=info
check "it syncs" soon 10 synced

# Clients ask in a loop until the file "stop" is there.
client() { # client NAMESPACE PROTOCOL ADDRESS PORT
	(while [ ! -e "$dir/stop" ]; do at "$1" "$fakes/net_peer" ask "$2" "$3" "$4" 100 2000; done) >"$dir/out.$1.$2.$3.$4" 2>&1 &
	clients+=($!)
}
clients=()
client d tcp 10.96.0.1 80
client d udp 10.96.0.1 53
client d tcp fd00:96::1 80
client outside tcp 192.0.2.2 30001
client d tcp 10.96.0.2 80
client outside tcp 192.0.2.2 30002
client d tcp 10.96.0.3 80
end=$((SECONDS + ${CHURN_SECONDS:-20}))
rounds=0
while [ $SECONDS -lt $end ]; do
	rounds=$((rounds + 1))
	i=$((RANDOM % 200 + 1))
	slice "other-$i-4" "other-$i" "$ends" $(printf '10.88.0.%s ' $(seq 11 $((11 + RANDOM % 3))))
	gone services "other-$((RANDOM % 200 + 1))"
	service "other-$i" ClusterIP "10.97.0.$i" '{"name":"http","protocol":"TCP","port":80}'
	# Endpoints come and go; those that stay behind serve on, as terminating pods do.
	slice moving-4 moving "$ends" $(shuf -n $((RANDOM % 3 + 1)) -e 10.88.0.11 10.88.0.12 10.88.0.13)
	slice pinned-4 pinned "$ends" $(shuf -n $((RANDOM % 3 + 1)) -e 10.88.0.11 10.88.0.12 10.88.0.13)
	case $((rounds % 60)) in
	10) nft add element inet nl_test endpoint4 '{ 0:9 . 10.96.0.1 . tcp . 80 : 192.0.2.77 . 80 }' ;;
	20) nft add table ip somebody; nft delete table ip somebody ;;
	30) proxy_stop; proxy_start --log-level=info ;;
	45) proxy_stop KILL 2>/dev/null; proxy_start --log-level=info ;;
	55) nft add rule inet nl_test forward counter ;;
	esac
done
touch "$dir/stop"
wait "${clients[@]}"
echo "# $rounds rounds of changes"
for f in "$dir"/out.*; do
	all=$(wc -l <"$f")
	lost=$(grep -vc '^[abc] ' "$f")
	name=${f##*/out.}
	if [ "$lost" = 0 ] && [ "$all" -gt 100 ]; then ok "$name: $all connections, none lost"; else
		not_ok "$name: $lost of $all lost: $(grep -v '^[abc] ' "$f" | sort | uniq -c | tr '\n' ';')"
	fi
done
check "and the end state is there" soon 10 synced
grep -E 'ERROR: |runtime error|AddressSanitizer|Assertion' "$dir/proxy.log" && not_ok "nothing bad in the log"
[ -n "${KEEP_LOG:-}" ] && cp "$dir/proxy.log" /tmp/proxy_churn.log
exit ${failed:-0}

#!/bin/bash
# proxy_apiserver.sh - proxy-lite against a real kube-apiserver and etcd: generated Services, changes, restarts, expired
# versions. Needs KUBE_APISERVER and ETCD, or build/gotools/{kube-apiserver,etcd}; skipped without.
#
# How to get them: go build -o build/gotools/etcd go.etcd.io/etcd/server/v3 and
# go build -o build/gotools/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver, in a module that requires both.
set -u
. tests/integration/lib-proxy.sh
apiserver=${KUBE_APISERVER:-$BUILD/gotools/kube-apiserver}
etcd=${ETCD:-$BUILD/gotools/etcd}
if [ ! -x "$apiserver" ] || [ ! -x "$etcd" ]; then
	echo "skip - proxy against kube-apiserver: no $apiserver or no $etcd"
	exit 0
fi
proxy_enter "$@"
node_network
for p in a b c d; do serve $p tcp:8080 udp:5353; done
count=${SERVICES:-300}

start_etcd() {
	"$etcd" --data-dir "$dir/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:12379 \
		--advertise-client-urls http://127.0.0.1:12379 --listen-peer-urls http://127.0.0.1:12380 >"$dir/etcd.log" 2>&1 &
	pids+=($!)
	soon 30 curl -sf http://127.0.0.1:12379/health
}
start_apiserver() {
	"$apiserver" --etcd-servers=http://127.0.0.1:12379 --secure-port=16443 --bind-address=127.0.0.1 --cert-dir="$dir/certs" \
		--service-cluster-ip-range=10.96.0.0/16 --authorization-mode=RBAC --token-auth-file="$dir/tokens.csv" \
		--service-account-issuer=https://kubernetes --service-account-key-file="$dir/sa.pub" \
		--service-account-signing-key-file="$dir/sa.key" --watch-cache=true >>"$dir/apiserver.log" 2>&1 &
	apiserver_pid=$!
	pids+=($apiserver_pid)
	soon 120 kube /readyz
}
kube() { # kube PATH [CURL-OPTION...]: as administrator
	curl -sf --max-time 20 --cacert "$dir/certs/apiserver.crt" \
		-H "Authorization: Bearer admin-token" -H 'Content-Type: application/json' "https://127.0.0.1:16443$1" "${@:2}"
}
create() { kube "$1" -X POST --data-binary @- -o /dev/null; } # create PATH: JSON from stdin
make_service() { # make_service NAME TYPE MORE
	create /api/v1/namespaces/default/services <<-JSON
		{"apiVersion":"v1","kind":"Service","metadata":{"name":"$1"},"spec":{"type":"$2","ports":[{"name":"http","port":80}]${3:-}}}
	JSON
}
slice_json() { # slice_json SERVICE ADDRESS...
	local list=
	for a in "${@:2}"; do list="$list{\"addresses\":[\"$a\"],\"conditions\":{\"ready\":true},\"nodeName\":\"node\"},"; done
	cat <<-JSON
		{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"$1-x","labels":{"kubernetes.io/service-name":"$1"}},
		 "addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],"endpoints":[${list%,}]}
	JSON
}
slices=/apis/discovery.k8s.io/v1/namespaces/default/endpointslices
ip_of() { kube "/api/v1/namespaces/default/services/$1" | jq -r .spec.clusterIP; }
frontends() { curl -sf http://127.0.0.1:10249/metrics | awk '$1 == "proxy_lite_frontends" { print $2 }'; }

openssl genrsa -out "$dir/sa.key" 2048 2>/dev/null
openssl rsa -in "$dir/sa.key" -pubout -out "$dir/sa.pub" 2>/dev/null
cat >"$dir/tokens.csv" <<'CSV'
admin-token,admin,1,"system:masters"
proxy-token,system:kube-proxy,2
CSV
start_etcd
start_apiserver || { not_ok "kube-apiserver starts"; tail -n 30 "$dir/apiserver.log"; exit 1; }
cat >"$dir/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:16443", certificate-authority: certs/apiserver.crt}}]
users: [{name: u, user: {token: proxy-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
YAML
start_proxy() {
	"$BUILD/bin/proxy-lite" --kubeconfig="$dir/kubeconfig" --admin-socket="$dir/admin.sock" --table=nl_test \
		--hostname-override=node --cluster-cidr=10.88.0.0/16 --healthz-bind-address=127.0.0.1:10256 --log-level=debug "$@" 2>>"$dir/proxy.log" &
	proxy_pid=$!
}
start_proxy
check "it syncs, with the rights of system:kube-proxy" soon 20 synced
check "the API server's own Service is there" soon 5 sh -c "nft list map inet nl_test frontend4 | grep -q '10.96.0.1 . tcp . 443'"
for i in $(seq "$count"); do
	make_service "s$i" ClusterIP
	slice_json "s$i" 10.88.0.11 10.88.0.12 10.88.0.13 | create $slices
done
check "$count Services and slices, created one by one" soon 30 gives $((count + 1)) frontends
ip=$(ip_of s1)
is "traffic flows" "a b c" who d tcp "$ip" 80 40
slice_json s1 10.88.0.12 | kube "$slices/s1-x" -X PUT --data-binary @- -o /dev/null
check "an endpoint changed" soon 3 gives b who d tcp "$ip" 80 10
make_service sticky ClusterIP ',"sessionAffinity":"ClientIP"'
slice_json sticky 10.88.0.11 10.88.0.12 10.88.0.13 | create $slices
one() { [ "$(who d tcp "$1" 80 20 | wc -w)" = 1 ]; }
check "session affinity" soon 5 one "$(ip_of sticky)"
make_service np NodePort
slice_json np 10.88.0.13 | create $slices
port=$(kube /api/v1/namespaces/default/services/np | jq -r '.spec.ports[0].nodePort')
check "node port $port" soon 5 gives c who outside tcp 192.0.2.2 "$port" 5
make_service headless ClusterIP ',"clusterIP":"None"'
before=$(frontends)
kube /api/v1/namespaces/default/services/s2 -X DELETE -o /dev/null
check "a deleted Service" soon 5 gives $((before - 1)) frontends

# ---- the API server goes and comes ----
kill -9 "$apiserver_pid"
wait "$apiserver_pid" 2>/dev/null
is "traffic flows without it" b who d tcp "$ip" 80 10
start_apiserver
slice_json s1 10.88.0.11 | kube "$slices/s1-x" -X PUT --data-binary @- -o /dev/null
check "it comes back: changes arrive" soon 40 gives a who d tcp "$ip" 80 10

# ---- versions that the server has forgotten ----
kill -STOP "$proxy_pid"
for i in 12 13 11 12; do slice_json s1 10.88.0.$i | kube "$slices/s1-x" -X PUT --data-binary @- -o /dev/null; done
rev=$(curl -s http://127.0.0.1:12379/v3/kv/range -X POST -d '{"key":"AA=="}' | jq -r .header.revision)
curl -s http://127.0.0.1:12379/v3/kv/compaction -X POST -d "{\"revision\":\"$rev\"}" >/dev/null
kill -9 "$apiserver_pid"
wait "$apiserver_pid" 2>/dev/null
start_apiserver
kill -CONT "$proxy_pid"
check "after a compaction it lists again" soon 60 gives b who d tcp "$ip" 80 10
# The server takes itself out of its own Service when it ends, and comes back into it a little after its start.
soon 30 sh -c "nft list map inet nl_test frontend4 | grep -q '10.96.0.1 . tcp . 443'"
sleep 1
proxy_stop
start_proxy
check "a restart syncs" soon 20 synced
is "... and finds the table right" 1 sh -c "tail -n 20 '$dir/proxy.log' | grep -c 'the table was right already'"
pss=$(awk '/^Pss:/ { print $2 }' "/proc/$proxy_pid/smaps_rollup")
echo "# PSS with TLS and $count Services: $pss kB"
grep -E 'ERROR: |runtime error|AddressSanitizer|Assertion| error: ' "$dir/proxy.log" && not_ok "nothing bad in the log"
[ -n "${KEEP_LOG:-}" ] && cp "$dir/proxy.log" "$dir/apiserver.log" /tmp/px/
exit ${failed:-0}

#!/bin/bash
# proxy_cluster.sh - proxy-lite against an API server over TLS: kubeconfig, rotating tokens, kube-proxy's configuration file.
set -u
. tests/integration/lib-proxy.sh
proxy_enter "$@"
node_network
for p in a b c d; do serve $p tcp:8080; done
mkdir -p "$dir/api/services" "$dir/api/endpointslices"
echo secret-1 >"$dir/api/token"
"$fakes/kube_api" 127.0.0.1:16443 "$dir/api" tls 2>"$dir/api.log" &
pids+=($!)
soon 10 test -s "$dir/api/kubeconfig"
web='{"name":"http","protocol":"TCP","port":80}'
ends='{"name":"http","protocol":"TCP","port":8080}'
service web NodePort 10.96.0.1 '{"name":"http","protocol":"TCP","port":80,"nodePort":30080}'
slice web-4 web "$ends" 10.88.0.11
start() { # start OPTION...
	"$BUILD/bin/proxy-lite" --admin-socket="$dir/admin.sock" --table=nl_test --hostname-override=node --log-level=debug \
		--nftables-sync-period=1s --healthz-bind-address=127.0.0.1:10256 "$@" 2>>"$dir/proxy.log" &
	proxy_pid=$!
}
start --kubeconfig="$dir/api/kubeconfig" --cluster-cidr=10.88.0.0/16
check "it syncs over TLS with certificate and token" soon 10 synced
is "traffic flows" a who d tcp 10.96.0.1 80 5
slice web-4 web "$ends" 10.88.0.12
check "a watch over TLS brings changes" soon 3 gives b who d tcp 10.96.0.1 80 5
echo secret-2 >"$dir/api/token"
echo cut >"$dir/api/fault"
sleep 0.2
rm "$dir/api/fault"
slice web-4 web "$ends" 10.88.0.13
check "a new token is taken up" soon 15 gives c who d tcp 10.96.0.1 80 5
pss=$(awk '/^Pss:/ { print $2 }' "/proc/$proxy_pid/smaps_rollup")
echo "# PSS with TLS: $pss kB"
proxy_stop

refuses() { # refuses NAME TEXT KUBECONFIG-EDIT
	local got
	sed "$3" "$dir/api/kubeconfig" >"$dir/api/broken"
	got=$(timeout 5 "$BUILD/bin/proxy-lite" --table=nl_other --admin-socket= --healthz-bind-address= --metrics-bind-address= --kubeconfig="$dir/api/broken" 2>&1)
	case $got in *"$2"*) ok "$1" ;; *) not_ok "$1: $got" ;; esac
}
refuses "an exec plugin is refused by name" 'user: exec is not supported' 's|tokenFile: token|exec: {command: x}|'
refuses "unverified TLS is refused" 'insecure-skip-tls-verify is not supported' 's|    certificate-authority: ca.pem|    insecure-skip-tls-verify: true|'
refuses "a missing file is named" 'missing.pem' 's|ca.pem|missing.pem|'
refuses "a missing context" 'there is no context "other"' 's|current-context: x|current-context: other|'
refuses "a missing user" 'there is no user "v"' 's|user: u}|user: v}|'
refuses "no URL" 'is not https://HOST:PORT' 's|https://127.0.0.1:16443|127.0.0.1:16443|'
refuses "broken YAML says where" 'line' 's|clusters:|clusters: [|'
refuses "a certificate without key" 'belong together' '/client-key/d'

cat >"$dir/config.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: "$dir/api/kubeconfig", qps: 5}
clusterCIDR: 10.88.0.0/16
nodePortAddresses: [10.88.0.0/16]
conntrack: {maxPerCore: 32768, min: 0}
nftables: {masqueradeAll: true, minSyncPeriod: 5ms, syncPeriod: 1s}
featureGates: {Some: true}
colour: blue
YAML
start --config="$dir/config.yaml"
check "a KubeProxyConfiguration is obeyed" soon 10 synced
is "... node port addresses" c who d tcp 10.88.0.1 30080
is "... masqueradeAll" 10.88.0.1 seen d tcp 10.96.0.1 80 3
check "... another mode is warned of" grep -q 'mode iptables is not offered' "$dir/proxy.log"
check "... sysctls are warned of" grep -q 'conntrack.maxPerCore is left' "$dir/proxy.log"
check "... unknown keys are warned of" grep -q 'configuration: colour is not known' "$dir/proxy.log"
sed -i 's/masqueradeAll: true/masqueradeAll: false/' "$dir/config.yaml"
ended() { ! kill -0 "$proxy_pid" 2>/dev/null; }
check "a changed configuration ends it" soon 5 ended
wait "$proxy_pid" 2>/dev/null
start --config="$dir/config.yaml" --cluster-cidr=10.99.0.0/16
check "the command line goes before the file" soon 10 gives 10.88.0.1 seen d tcp 10.96.0.1 80 3
proxy_stop
sed -i 's/kind: KubeProxyConfiguration/kind: KubeletConfiguration/' "$dir/config.yaml"
is "another kind is refused" 1 sh -c "'$BUILD/bin/proxy-lite' --table=nl_other --config='$dir/config.yaml' 2>&1 | grep -c 'is not kubeproxy.config.k8s.io/v1alpha1, KubeProxyConfiguration'"
grep -E 'ERROR: |runtime error|AddressSanitizer|Assertion' "$dir/proxy.log" && not_ok "nothing bad in the log"
[ -n "${KEEP_LOG:-}" ] && cp "$dir/proxy.log" /tmp/proxy_cluster.log
exit ${failed:-0}

# lib-proxy.sh - a node with pods and an outside client in network namespaces of their own, a fake API server, proxy-lite.
# Source it in a script that begins with proxy_enter "$@" (which runs the script again in the node's namespace).
#
#	outside 192.0.2.1 --- 192.0.2.2 node 10.88.0.1 (bridge pods) --- 10.88.0.11 a, 10.88.0.12 b, 10.88.0.13 c, 10.88.0.14 d
#	        fd00:2::1 --- fd00:2::2      fd00:88::1              --- fd00:88::11 ...
BUILD=${BUILD:-$PWD/build}
fakes=$BUILD/tests/fakes

proxy_enter() {
	if [ "${1:-}" != inside ]; then
		make -s ${MAKE_VARIANT:-$(case $BUILD in *-sanitize) echo SANITIZE=1 ;; *-coverage) echo COVERAGE=1 ;; esac)} \
			"$(basename "$BUILD")/tests/fakes/kube_api" "$(basename "$BUILD")/tests/fakes/net_peer" \
			"$(basename "$BUILD")/bin/proxy-lite" >&2 || exit 1
		exec unshare -n bash "$0" inside
	fi
	dir=$(mktemp -d /tmp/proxy_test.XXXXXX)
	pids=()
	declare -gA ns
	trap proxy_leave EXIT
}
proxy_leave() {
	[ -n "${proxy_pid:-}" ] && kill "$proxy_pid" 2>/dev/null && wait "$proxy_pid" 2>/dev/null
	kill "${pids[@]}" 2>/dev/null
	wait "${pids[@]}" 2>/dev/null
	rm -rf "$dir"
}
ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; failed=1; }
check() { # check NAME COMMAND...: succeeds
	local name=$1
	shift
	if "$@" >"$dir/check.log" 2>&1; then ok "$name"; else
		not_ok "$name"
		tail -n 20 "$dir/check.log"
	fi
}
is() { # is NAME WANTED COMMAND...: prints this
	local name=$1 wanted=$2 got
	shift 2
	got=$("$@" 2>&1)
	if [ "$got" = "$wanted" ]; then ok "$name"; else not_ok "$name: wanted \"$wanted\", got \"$got\""; fi
}
soon() { # soon SECONDS COMMAND...: succeeds within that time
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $end ] || return 1
		sleep 0.05
	done
}
gives() { [ "$("${@:2}" 2>/dev/null)" = "$1" ]; } # gives TEXT COMMAND...

namespace() { # namespace NAME
	unshare -n sleep 100000 &
	pids+=($!)
	while [ "$(readlink /proc/self/ns/net)" = "$(readlink "/proc/$!/ns/net" 2>/dev/null)" ]; do sleep 0.01; done
	ns[$1]=$!
	at "$1" ip link set lo up
	at "$1" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad'
}
at() { # at NAMESPACE COMMAND...; "node" is where we are
	if [ "$1" = node ]; then "${@:2}"; else nsenter --net="/proc/${ns[$1]}/ns/net" "${@:2}"; fi
}
pod() { # pod NAME LAST-NUMBER
	namespace "$1"
	ip link add "v$1" type veth peer name eth0 netns "${ns[$1]}"
	ip link set "v$1" master pods up
	ip link set dev "v$1" type bridge_slave hairpin on
	at "$1" ip addr add "10.88.0.$2/16" dev eth0
	at "$1" ip addr add "fd00:88::$2/64" dev eth0 nodad
	at "$1" ip link set eth0 up
	at "$1" ip route add default via 10.88.0.1
	at "$1" ip -6 route add default via fd00:88::1
}
spawn() { # spawn NAMESPACE COMMAND...: in the background, until the end; the pid is the command's own
	nsenter --net="/proc/${ns[$1]}/ns/net" "${@:2}" &
	pids+=($!)
}
serve() { spawn "$1" "$fakes/net_peer" serve "$@"; } # serve NAMESPACE PROTOCOL:PORT...
node_network() {
	ip link set lo up
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad # an address is not used while it is looked for
	echo 1 >/proc/sys/net/ipv4/ip_forward
	echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
	for f in iptables ip6tables; do echo 1 >/proc/sys/net/bridge/bridge-nf-call-$f; done 2>/dev/null
	ip link add pods type bridge
	ip addr add 10.88.0.1/16 dev pods
	ip addr add fd00:88::1/64 dev pods nodad
	ip link set pods up
	pod a 11
	pod b 12
	pod c 13
	pod d 14
	namespace outside
	ip link add uplink type veth peer name eth0 netns "${ns[outside]}"
	ip addr add 192.0.2.2/24 dev uplink
	ip addr add fd00:2::2/64 dev uplink nodad
	ip link set uplink up
	at outside ip addr add 192.0.2.1/24 dev eth0
	at outside ip addr add fd00:2::1/64 dev eth0 nodad
	at outside ip link set eth0 up
	at outside ip route add default via 192.0.2.2
	at outside ip -6 route add default via fd00:2::2
	ip route add default via 192.0.2.1
	ip -6 route add default via fd00:2::1
}

api_start() {
	mkdir -p "$dir/api/services" "$dir/api/endpointslices"
	"$fakes/kube_api" "$dir/api.sock" "$dir/api" 2>"$dir/api.log" &
	api_pid=$!
	pids+=($api_pid)
	soon 5 test -S "$dir/api.sock"
}
proxy_start() { # proxy_start [OPTION...]
	"$BUILD/bin/proxy-lite" --api-socket="unix://$dir/api.sock" --admin-socket="$dir/admin.sock" --table=nl_test \
		--hostname-override=node --healthz-bind-address=127.0.0.1:10256 --cluster-cidr=10.88.0.0/16,fd00:88::/64 \
		--log-level=debug "$@" 2>>"$dir/proxy.log" &
	proxy_pid=$!
}
proxy_stop() { # proxy_stop [SIGNAL]
	kill "-${1:-TERM}" "$proxy_pid"
	wait "$proxy_pid" 2>/dev/null
	proxy_pid=
}
proxy() { "$BUILD/bin/proxy-lite" --admin-socket="$dir/admin.sock" --table=nl_test "$@"; }
synced() { proxy dump | grep -q 'as wanted' && ! proxy dump | grep -q 'not read yet'; }
put() { # put services|endpointslices NAME: JSON from stdin, written beside and renamed
	cat >"$dir/api/$1/.$2.new" && mv "$dir/api/$1/.$2.new" "$dir/api/$1/$2.json"
}
gone() { rm -f "$dir/api/$1/$2.json"; } # gone services|endpointslices NAME
# service NAME TYPE IPS PORTS [MORE [STATUS]]: IPS space-separated; PORTS as JSON objects; MORE as ',"key":value' in spec;
# STATUS as a JSON object
service() {
	local ips
	ips=$(printf '"%s",' $3)
	put services "$1" <<-JSON
		{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":"$1","creationTimestamp":"2026-01-01T00:00:00Z"},
		 "spec":{"type":"$2","clusterIP":"${3%% *}","clusterIPs":[${ips%,}],"ports":[$4]${5:-}},"status":${6:-{\}}}
	JSON
}
# slice NAME SERVICE PORTS ENDPOINT...: an endpoint is ADDRESS[,node][,notready][,terminating]
slice() {
	local name=$1 service=$2 ports=$3 family=IPv4 list= e address
	shift 3
	for e in "$@"; do
		address=${e%%,*}
		case $address in *:*) family=IPv6 ;; esac
		list="$list{\"addresses\":[\"$address\"],\"conditions\":{$(case $e in
			*,notready*terminating*) echo '"ready":false,"serving":false,"terminating":true' ;;
			*,terminating*) echo '"ready":false,"serving":true,"terminating":true' ;;
			*,notready*) echo '"ready":false,"serving":false,"terminating":false' ;;
			*) echo '"ready":true' ;;
			esac)},\"nodeName\":\"$(case $e in *,other*) echo other ;; *) echo node ;; esac)\"},"
	done
	put endpointslices "$name" <<-JSON
		{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"$family",
		 "metadata":{"namespace":"default","name":"$name","labels":{"kubernetes.io/service-name":"$service"}},
		 "ports":[$ports],"endpoints":[${list%,}]}
	JSON
}
ask() { at "$1" "$fakes/net_peer" ask "${@:2}"; } # ask FROM PROTOCOL ADDRESS PORT [COUNT [MS]]
who() { ask "$@" 2>&1 | cut -d' ' -f1 | sort -u | tr '\n' ' ' | sed 's/ $//'; } # names that answer
seen() { ask "$@" 2>&1 | cut -d' ' -f2- | sort -u | tr '\n' ' ' | sed 's/ $//'; } # client addresses that servers saw

#!/bin/bash
# network_bridge.sh - the built-in pod network, driven by a small program, with real traffic between namespaces:
# a node (in a namespace of its own), two pods, and a host outside that the node's uplink leads to.
set -u
BUILD=${BUILD:-$PWD/build}
if [ "${1:-}" != inside ]; then
	make -s ${MAKE_VARIANT:-$(case $BUILD in *-sanitize) echo SANITIZE=1 ;; *-coverage) echo COVERAGE=1 ;; esac)} \
		"$(basename "$BUILD")/tests/unit/runtime-lite/net/bridge_tool" \
		"$(basename "$BUILD")/tests/unit/runtime-lite/net/peer_tool" >&2 || exit 1
	exec unshare -n bash "$0" inside
fi

dir=$(mktemp -d /tmp/network_bridge.XXXXXX)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
tool() { "$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/net" "$@"; }
peer() { "$BUILD/tests/unit/runtime-lite/net/peer_tool" "$@"; }
check() {
	local name=$1
	shift
	if "$@" >"$dir/log" 2>&1; then echo "ok - $name"; else
		echo "not ok - $name"
		tail -n 20 "$dir/log"
	fi
}
# is NAME WANTED COMMAND...: the command prints this.
is() {
	local name=$1 wanted=$2 got
	shift 2
	got=$("$@" 2>&1)
	if [ "$got" = "$wanted" ]; then echo "ok - $name"; else echo "not ok - $name: wanted \"$wanted\", got \"$got\""; fi
}
# fails NAME TEXT COMMAND...: the command fails and its message holds the text.
fails() {
	local name=$1 wanted=$2 got
	shift 2
	if got=$("$@" 2>&1); then echo "not ok - $name: it did not fail"; return; fi
	case $got in *"$wanted"*) echo "ok - $name" ;; *) echo "not ok - $name: wanted \"$wanted\", got \"$got\"" ;; esac
}
not() { ! "$@"; }
namespace() { # VARIABLE: becomes the path of a new network namespace
	unshare -n sleep 1000 >/dev/null 2>&1 &
	pids+=($!)
	while [ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/$!/ns/net)" ]; do sleep 0.02; done
	printf -v "$1" /proc/%s/ns/net "$!"
}
in_ns() { nsenter --net="$1" "${@:2}"; }
# NETNS NAME PROTOCOL:PORT... No function around the program, so that $! is the program itself.
serve() {
	nsenter --net="$1" "$BUILD/tests/unit/runtime-lite/net/peer_tool" serve "${@:2}" >/dev/null 2>&1 &
	pids+=($!)
}
ask_from() { in_ns "$1" "$BUILD/tests/unit/runtime-lite/net/peer_tool" ask "${@:2}"; }
links() { ip -o link | awk -F': ' '{print $2}' | sort | tr '\n' ' '; }

ip link set lo up
namespace outside
ip link add uplink type veth peer name eth0 netns "${outside#/proc/}" 2>/dev/null ||
	ip link add uplink type veth peer name eth0 netns "$(echo "$outside" | cut -d/ -f3)"
ip addr add 192.0.2.2/24 dev uplink
ip link set uplink up
ip route add default via 192.0.2.1
in_ns "$outside" ip addr add 192.0.2.1/24 dev eth0
in_ns "$outside" ip link set eth0 up
in_ns "$outside" ip link set lo up
serve "$outside" outside tcp:80 udp:53
nft -f - <<-END
	table inet foreign {
		set s { type ipv4_addr; elements = { 10.85.0.2 } }
		chain c { type filter hook forward priority 0; policy accept; ip saddr @s counter; }
	}
	table ip runtime_lite {
		chain c { }
	}
END
nft list ruleset >"$dir/foreign"
ip link add br-foreign type bridge
before=$(links)

is "nothing is wrong before the first pod" "" tool problem
is "nothing is made before the first pod" "$before" links
namespace a
namespace b
is "the first pod gets the first address" 10.85.0.2 tool attach pod-a "$a" tcp:8080:80 udp:5353:53 tcp:8081:80:127.0.0.1
is "the second pod gets the next" 10.85.0.3 tool attach pod-b "$b"
is "attaching again changes nothing" 10.85.0.2 tool attach pod-a "$a" tcp:8080:80 udp:5353:53 tcp:8081:80:127.0.0.1
serve "$a" pod-a tcp:80 udp:53
serve "$b" pod-b tcp:80 udp:53
sleep 0.3

# Twice: br_netfilter makes the bridge itself translate addresses, where it is loaded and on.
bridge_nf=/proc/sys/net/bridge/bridge-nf-call-iptables
traffic() { # HOW
	is "pod to pod by TCP, client address kept$1" "pod-b 10.85.0.2" ask_from "$a" tcp 10.85.0.3 80
	is "pod to pod by UDP$1" "pod-a 10.85.0.3" ask_from "$b" udp 10.85.0.2 53
	check "pod to pod by ICMP$1" in_ns "$a" busybox ping -c 1 -W 1 10.85.0.3
	is "node to pod$1" "pod-a 10.85.0.1" peer ask tcp 10.85.0.2 80
	check "no redirect makes pods talk past the node$1" in_ns "$a" sh -c '! ip route show cache | grep -q 10.85.0.3'
	is "pod to outside is masqueraded$1" "outside 192.0.2.2" ask_from "$a" tcp 192.0.2.1 80
	is "the same by UDP$1" "outside 192.0.2.2" ask_from "$b" udp 192.0.2.1 53
	is "host port from outside, client address kept$1" "pod-a 192.0.2.1" ask_from "$outside" tcp 192.0.2.2 8080
	is "UDP host port from outside$1" "pod-a 192.0.2.1" ask_from "$outside" udp 192.0.2.2 5353
	is "host port from the node by 127.0.0.1$1" "pod-a 10.85.0.1" peer ask tcp 127.0.0.1 8080
	is "host port from the node by its address$1" "pod-a 192.0.2.2" peer ask tcp 192.0.2.2 8080
	is "UDP host port from the node by 127.0.0.1$1" "pod-a 10.85.0.1" peer ask udp 127.0.0.1 5353
	is "host port from another pod, client address kept$1" "pod-a 10.85.0.3" ask_from "$b" tcp 192.0.2.2 8080
	is "host port from the pod itself (hairpin)$1" "pod-a 10.85.0.1" ask_from "$a" tcp 192.0.2.2 8080
}
[ ! -e $bridge_nf ] || echo 0 >$bridge_nf
traffic ""
if [ -e $bridge_nf ]; then
	echo 1 >$bridge_nf
	traffic " (br_netfilter)"
else
	echo "skip - traffic with br_netfilter: it is not loaded"
fi
is "host port bound to 127.0.0.1 answers there" "pod-a 10.85.0.1" peer ask tcp 127.0.0.1 8081
check "and not on the uplink" not ask_from "$outside" tcp 192.0.2.2 8081
in_ns "$outside" ip route add 198.51.100.0/24 via 192.0.2.2
check "traffic through the node to that port is not caught" not ask_from "$outside" tcp 198.51.100.1 8080
serve /proc/self/ns/net node tcp:9000
# A pod that sends to 127.0.0.9 over the wire: the node's route_localnet alone would let it in.
in_ns "$a" ip route add 127.0.0.9 via 10.85.0.1 dev eth0 onlink src 10.85.0.2 table 100
in_ns "$a" sh -c 'echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet; ip rule add pref 10 lookup local; ip rule add pref 5 to 127.0.0.9 lookup 100; ip rule del pref 0 lookup local'
check "pods cannot reach the node's loopback" not ask_from "$a" tcp 127.0.0.9 9000

fails "a taken host port names who has it" "host port 8080/tcp is taken by pod sandbox pod-a" tool attach pod-c "$b" tcp:8080:80
fails "also when one of the two binds one address" "host port 8081/tcp is taken by pod sandbox pod-a" tool attach pod-c "$b" tcp:8081:80
fails "a port named twice" "named twice" tool attach pod-c "$b" tcp:1:1 tcp:1:2
fails "an IPv6 host address" "is not an IPv4 address" tool attach pod-c "$b" tcp:1:1:fe80--1
is "a refused pod leaves no lease" "10.85.0.2 10.85.0.3 last " sh -c "ls '$dir/net' | tr '\n' ' '"
check "counters of eth0" sh -c "$(declare -f tool); BUILD='$BUILD' dir='$dir'; tool stats '$a' | grep -q 'rx_bytes=[1-9]'"

nft list table inet runtime_lite >"$dir/listing"
check "nft prints the table and loads its own listing" nft -f "$dir/listing"
nft delete table inet runtime_lite
is "a deleted table is found and written again" "" tool problem
is "host port works after that" "pod-a 192.0.2.1" ask_from "$outside" tcp 192.0.2.2 8080
ip link del node0
is "a deleted bridge is made again" "" tool problem
sleep 0.1
is "pods are in it" "pod-b 10.85.0.2" ask_from "$a" tcp 10.85.0.3 80

# A UDP client that keeps its port while the pod behind the host port changes.
namespace c
ask_from "$outside" udp 192.0.2.2 5353 40000 >/dev/null
check "detach" tool detach pod-a
check "detach again" tool detach pod-a
check "the host port is closed" not ask_from "$outside" tcp 192.0.2.2 8080
check "an address is not used again at once" test "$(tool attach pod-c "$c" udp:5353:53)" = 10.85.0.4
serve "$c" pod-c udp:53
sleep 0.2
is "an old UDP flow reaches the new pod" "pod-c 192.0.2.1" ask_from "$outside" udp 192.0.2.2 5353 40000

# The daemon dies between two steps.
namespace d
tool attach pod-d "$d" tcp:7000:80 >/dev/null
rm "$dir/net/10.85.0.5"                              # lease lost, veth and elements there
printf 'runtime-lite lea' >"$dir/net/10.85.0.77"     # cut short
printf 'x' >"$dir/net/.10.85.0.78.new"
printf 'runtime-lite lease 1\nsandbox ghost\nrange 10.85.0.0/16\nport tcp 7001 80 *\n' >"$dir/net/10.85.0.79"
check "reconcile with what lives" tool reconcile pod-b pod-c
is "leases of the dead are gone" "10.85.0.3 10.85.0.4 last " sh -c "ls -A '$dir/net' | tr '\n' ' '"
is "veths of the dead are gone" 2 sh -c 'ip -o link | grep -c "master node0"'
check "elements of the dead are gone" sh -c '! nft list table inet runtime_lite | grep -qE "10.85.0.5|7000|7001"'
is "the living still answer" "pod-c 10.85.0.3" ask_from "$b" udp 10.85.0.4 53
printf 'runtime-lite lease 2\n' >"$dir/net/10.85.0.80"
fails "a lease of a newer version is refused, not destroyed" "not known to this version" tool problem
rm "$dir/net/10.85.0.80"

namespace e
is "another range for new pods" 10.86.7.2 tool move 10.86.7.0/24,fd00::/64 pod-e "$e"
serve "$e" pod-e tcp:80
sleep 0.2
is "pods of both ranges reach each other" "pod-e 10.85.0.3" ask_from "$b" tcp 10.86.7.2 80
is "the other way" "pod-b 10.86.7.2" ask_from "$e" tcp 10.85.0.3 80
fails "moving to a range that is in use elsewhere" "overlaps 192.0.2.2/24 of link uplink" tool move 192.0.2.0/24 pod-f "$e"
fails "a range that is in use elsewhere" "overlaps 192.0.2.2/24 of link uplink" env BRIDGE=node1 TABLE=other CIDR=192.0.0.0/16 \
	"$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/other" attach x "$e"
fails "a foreign bridge is not taken" "was not made by runtime-lite" env BRIDGE=br-foreign \
	"$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/other" attach x "$e"
fails "a bad range" "is not an IPv4 range" env CIDR=10.85.0.0 "$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/other" problem
fails "a range with host bits" "bits beyond the prefix" env CIDR=10.85.0.1/16 "$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/other" problem
fails "a full range" "no free address is left in 10.99.0.0/29" env CIDR=10.99.0.0/29 BRIDGE=node2 TABLE=two \
	sh -c 'for i in 1 2 3 4 5 6; do unshare -n sleep 20 >/dev/null 2>&1 & p=$!; until [ "$(readlink /proc/$p/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done; "$0" "$1" attach p$i /proc/$p/ns/net || { kill $p; exit 1; }; kill $p; done' \
	"$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/two"
check "a network whose netns have all gone is taken down" env CIDR=10.99.0.0/29 BRIDGE=node2 TABLE=two \
	sh -c '"$0" "$1" reconcile && "$0" "$1" remove' "$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/two"
check "many at once" tool many 100
nft add table ip drops
nft 'add chain ip drops FORWARD { type filter hook forward priority 0; policy drop; }'
ip link del node0
check "a foreign policy that drops forwarded packets is named" sh -c \
	"'$BUILD/tests/unit/runtime-lite/net/bridge_tool' '$dir/net' problem 2>&1 | grep 'chain FORWARD of table ip drops drops forwarded traffic'"
nft delete table ip drops
for i in 1 2 3 4 5 6 7 8; do
	"$BUILD/tests/unit/runtime-lite/net/bridge_tool" "$dir/net" many 1000 >/dev/null 2>&1 &
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
	kill -9 $!
	wait $! 2>/dev/null
done
check "after kill -9 at random instants, reconcile" tool reconcile pod-b pod-c pod-e
is "only the living have leases" "10.85.0.3 10.85.0.4 10.86.7.2 last " sh -c "ls -A '$dir/net' | tr '\n' ' '"
is "only they have veths" 3 sh -c 'ip -o link | grep -c "master node0"'
is "and elements" "10.85.0.3 10.85.0.4 10.86.7.2" \
	sh -c 'nft list set inet runtime_lite pod | grep -oE "10\.[0-9.]+" | sort | tr "\n" " " | sed "s/ $//"'
is "and they answer" "pod-e 10.85.0.3" ask_from "$b" tcp 10.86.7.2 80

fails "no removal while pods use it" "3 pods still use it" tool remove
for id in pod-b pod-c pod-e; do tool detach $id; done
check "removal" tool remove
check "removal again" tool remove
is "no link is left" "$before" links
is "no lease is left" "last" ls -A "$dir/net"
check "foreign tables are as they were, ours is gone" sh -c "nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*/packets 0 bytes 0/' | diff - '$dir/foreign'"

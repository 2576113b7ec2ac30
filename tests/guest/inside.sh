#!/bin/bash
# inside.sh - runs in the guest, at each boot, as the last unit: the first boot installs and uses the packages, the second
# one sees whether everything came back, then removes and purges. Everything printed goes to the serial console.
stage_file=/var/lib/guest-test-stage
api=/run/kubelet-lite/kubelet-lite.sock
stage=$(cat $stage_file 2>/dev/null || echo 1)

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; }
check() { # check NAME COMMAND...
	local name=$1; shift
	if "$@" >/tmp/check.log 2>&1; then ok "$name"; else not_ok "$name"; tail -n 20 /tmp/check.log; fi
}
until_true() { # until_true SECONDS COMMAND...
	local end=$((SECONDS + $1)); shift
	while [ $SECONDS -lt $end ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 1
	done
	"$@"
}
get() { curl -sf --max-time 10 --unix-socket $api "http://localhost$1"; }
ready_pods() { get /api/v1/namespaces/default/pods | jq -r '[.items[] | select(any(.status.conditions[]?; .type=="Ready" and .status=="True"))] | length'; }
both_ready() { [ "$(ready_pods)" = 2 ]; }
restarts() { get /api/v1/namespaces/default/pods | jq -r '[.items[].status.containerStatuses[]?.restartCount] | add'; }
ids() { get /api/v1/namespaces/default/pods | jq -r '.items[].status.containerStatuses[]?.containerID' | sort; }
cluster_ip() { get /api/v1/namespaces/default/services/web | jq -r .spec.clusterIP; }
page() { curl -sf --max-time 5 "http://$1/"; }
both_answer() { # both_answer ADDRESS: within 40 tries both pods were seen
	local seen1= seen2= i
	for i in $(seq 40); do
		case $(page "$1") in *web-1*) seen1=1 ;; *web-2*) seen2=1 ;; esac
		[ -z "$seen1$seen2" ] || [ -z "$seen1" ] || [ -z "$seen2" ] || return 0
	done
	return 1
}
node_ip() { ip -4 -o addr show scope global | awk '{ sub(/\/.*/, "", $4); print $4; exit }'; }
ids_unchanged() {
	[ "$(ids)" = "$(cat /tmp/ids)" ] && [ "$(restarts)" = "$(cat /tmp/restarts)" ] && return 0
	ids | diff /tmp/ids -
	get /api/v1/events | jq -r '.items[] | "\(.lastTimestamp) \(.reason): \(.message)"' | sort | tail -n 12
	ids >/tmp/ids # the next step is judged by itself
	restarts >/tmp/restarts
	return 1
}
give_up() {
	journalctl -b --no-pager -n 150 -u runtime-lite -u kubelet-lite -u proxy-lite
	echo "not ok - $1"
	systemctl poweroff
	exit 1
}

install_and_use() {
	check "cgroup v2 is mounted" grep -q cgroup2 /proc/mounts
	ip link add uplink0 type veth peer name uplink1 && ip addr add 192.0.2.10/24 dev uplink0 && ip link set uplink0 up &&
		ip link set uplink1 up && ip route add default via 192.0.2.1
	check "the three packages install" dpkg -i /opt/test/*.deb
	for d in runtime-lite kubelet-lite proxy-lite; do
		check "$d is active" until_true 60 systemctl is-active --quiet $d
		check "$d is enabled" systemctl is-enabled --quiet $d
	done
	check "an image is loaded" runtime-lite load /opt/test/web.tar
	cp /opt/test/examples/*.yaml /etc/kubernetes/manifests/
	until_true 180 both_ready || give_up "both pods become ready"
	ok "both pods become ready"
	check "ClusterIP answers from both pods" until_true 20 both_answer "$(cluster_ip)"
	check "NodePort answers from both pods" until_true 20 both_answer 192.0.2.10:30080
	check "the memory limit is the kernel's (33554432)" grep -rqx 33554432 /sys/fs/cgroup --include=memory.max
	check "proxy-lite is not root" test "$(ps -o user= -C proxy-lite | head -n 1)" = proxy-lite
	check "AppArmor is enabled" grep -q Y /sys/module/apparmor/parameters/enabled
	ids >/tmp/ids; restarts >/tmp/restarts
	for d in runtime-lite kubelet-lite proxy-lite; do
		check "$d restarts" systemctl restart $d
		check "$d: pods are ready after its restart" until_true 60 both_ready
		check "$d: no container was restarted" ids_unchanged
	done
	for d in runtime-lite kubelet-lite proxy-lite; do
		kill -9 "$(systemctl show -p MainPID --value $d)"
		check "$d comes back after kill -9" until_true 60 systemctl is-active --quiet $d
		check "$d: pods are ready after kill -9" until_true 60 both_ready
		check "$d: no container was restarted by kill -9" ids_unchanged
	done
	check "traffic flows with all three stopped" stopped_traffic
	systemctl start runtime-lite kubelet-lite proxy-lite
	echo 2 >$stage_file
	sync
	systemctl reboot
}

stopped_traffic() {
	local address
	address=$(cluster_ip)
	systemctl stop runtime-lite kubelet-lite proxy-lite
	both_answer "$address"
}

after_reboot() {
	ip link add uplink0 type veth peer name uplink1 && ip addr add 192.0.2.10/24 dev uplink0 && ip link set uplink0 up &&
		ip link set uplink1 up && ip route add default via 192.0.2.1
	until_true 180 both_ready || give_up "pods come back after a reboot"
	ok "pods come back after a reboot"
	check "ClusterIP answers after a reboot" until_true 30 both_answer "$(cluster_ip)"
	check "remove" dpkg -r proxy-lite kubelet-lite runtime-lite
	check "remove keeps images" test -d /var/lib/runtime-lite
	check "remove keeps manifests" test -f /etc/kubernetes/manifests/web.yaml
	check "purge" dpkg -P proxy-lite kubelet-lite runtime-lite
	check "purge removes state" bash -c '! ls -d /var/lib/runtime-lite /run/runtime-lite /run/kubelet-lite /run/proxy-lite 2>/dev/null'
	check "no process is left" bash -c '! pgrep -a "runtime-lite|kubelet-lite|proxy-lite|monitor"'
	check "no mount is left" bash -c '! grep -E "runtime-lite|/var/lib/kubelet" /proc/mounts'
	check "no table is left" bash -c '! nft list tables | grep -E "lite"'
	check "no cgroup is left" bash -c '! find /sys/fs/cgroup -type d \( -name "*runtime-lite*" -o -name "kubepods*" \) | grep .'
	check "no link is left" bash -c '! ip -o link | grep -vE ": (lo|uplink0|uplink1)[@:]" | grep .'
	echo 3 >$stage_file
	echo "ok - guest finished"
	sync
	systemctl poweroff
}

case $stage in
1) install_and_use ;;
2) after_reboot ;;
*) systemctl poweroff ;;
esac

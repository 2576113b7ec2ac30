#!/bin/bash
# run.sh BUILD-DIR - install the three packages in a Debian 12 guest (systemd, cgroup v2, AppArmor) and use them there.
# The guest runs under qemu's software emulation, without KVM and without a network; what it finds comes back over its
# serial console as "ok - name" and "not ok - name" lines. Ends with "N passed, N failed".
set -eu
build=$1
here=$(dirname "$0")
work=$build/guest
suite=${GUEST_SUITE:-bookworm}
limit=${GUEST_TIMEOUT:-1200}
mkdir -p "$work"

need=
command -v mmdebstrap >/dev/null || need="$need mmdebstrap"
command -v qemu-system-x86_64 >/dev/null || need="$need qemu-system-x86"
command -v mke2fs >/dev/null || need="$need e2fsprogs"
if [ -n "$need" ]; then
	apt-get update -q >/dev/null
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $need >/dev/null
fi

# What the packages depend on, and what the test uses; the guest itself has no network.
debs=$(find "$build/deb" -name '*.deb' ! -name '*-dbgsym_*')
depends=$(for deb in $debs; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' |
	sed 's/(.*//; s/|.*//; s/ //g' | grep -v -e '-lite$' | sort -u | paste -sd,)
include="systemd,systemd-sysv,dbus,udev,linux-image-cloud-amd64,kmod,iproute2,procps,curl,jq,nftables,apparmor,$depends"
key=$(echo "$suite $include" | sha256sum | cut -c1-16)
if [ ! -f "$work/root-$key.tar" ]; then
	rm -f "$work"/root-*.tar
	echo "making the $suite guest's root"
	mmdebstrap --quiet --format=tar --variant=minbase --include="$include" "$suite" "$work/root-$key.tar.new"
	mv "$work/root-$key.tar.new" "$work/root-$key.tar"
fi

root=$(mktemp -d /tmp/node-lite-guest.XXXXXX)
trap 'rm -rf "$root"' EXIT
tar -C "$root" --exclude='./dev/*' -xf "$work/root-$key.tar"
install -d "$root/opt/test"
# shellcheck disable=SC2086
cp $debs "$root/opt/test/"
cp -r packaging/examples "$root/opt/test/"
cp "$here/inside.sh" "$root/opt/test/inside.sh"
packaging/tools/make-demo-image.sh "$root/opt/test/web.tar" >/dev/null
cp "$here/guest-test.service" "$root/etc/systemd/system/"
ln -sf /etc/systemd/system/guest-test.service "$root/etc/systemd/system/multi-user.target.wants/guest-test.service"
ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
ln -sf /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
echo "/dev/vda / ext4 rw,relatime 0 1" >"$root/etc/fstab"
echo guest >"$root/etc/hostname"
kernel=$(find "$root/boot" -name 'vmlinuz-*' | sort | tail -n 1)
initrd=$(find "$root/boot" -name 'initrd.img-*' | sort | tail -n 1)
cp "$kernel" "$work/vmlinuz"
cp "$initrd" "$work/initrd"
rm -f "$work/disk.img"
mke2fs -q -t ext4 -d "$root" "$work/disk.img" 3G

echo "booting the guest (software emulation: a minute for each boot)"
timeout "$limit" qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1536 -nic none \
	-display none -monitor none -serial "file:$work/console.log" \
	-drive file="$work/disk.img",format=raw,if=virtio,cache=unsafe \
	-kernel "$work/vmlinuz" -initrd "$work/initrd" \
	-append "root=/dev/vda rw console=ttyS0 quiet apparmor=1 security=apparmor panic=10" </dev/null &
qemu=$!
seen=0
while kill -0 $qemu 2>/dev/null; do
	sleep 2
	[ -f "$work/console.log" ] || continue
	lines=$(tr -d '\r' <"$work/console.log" | grep -aE '^(ok|not ok|skip|note) - ' || true)
	count=$(printf '%s' "$lines" | grep -c '' || true)
	if [ "$count" -gt "$seen" ]; then
		printf '%s\n' "$lines" | tail -n $((count - seen))
		seen=$count
	fi
done
code=0
wait $qemu || code=$?
passed=$(tr -d '\r' <"$work/console.log" | grep -acE '^ok - ' || true)
failed=$(tr -d '\r' <"$work/console.log" | grep -acE '^not ok - ' || true)
if ! grep -aq '^ok - guest finished' "$work/console.log"; then
	echo "not ok - the guest did not finish (qemu's exit code $code, limit $limit s)"
	failed=$((failed + 1))
fi
[ "$failed" -eq 0 ] || tail -n 120 "$work/console.log"
rm -f "$work/disk.img"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/bin/sh
# install-build-deps.sh - install what building and `make check` need, from Debian's packages only.
set -eu
packages="
	gcc make pkg-config libc6-dev protobuf-c-compiler
	libuv1-dev libjansson-dev libnghttp2-dev libprotobuf-c-dev libyaml-dev
	libseccomp-dev libcap-dev libmnl-dev libnftnl-dev libcurl4-openssl-dev zlib1g-dev libzstd-dev libssl-dev
	check mandoc busybox-static iproute2 nftables procps curl jq python3 openssl netcat-openbsd conntrack
	util-linux e2fsprogs file kmod ca-certificates git strace xz-utils zstd
"
missing=
for package in $packages; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
echo "installing:$missing"
apt-get update -q >/dev/null
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing >/dev/null

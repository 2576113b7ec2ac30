#!/bin/sh
# install-deb-deps.sh - install what building the Debian packages needs, beyond what building needs.
set -eu
"$(dirname "$0")/install-build-deps.sh"
missing=
for package in build-essential debhelper fakeroot; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
apt-get update -q >/dev/null
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >/dev/null

#!/bin/bash
# packaging_install.sh - make install follows DESTDIR and PREFIX, and make uninstall takes everything away again.
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d /tmp/node-lite-install.XXXXXX)
trap 'rm -rf "$dir"' EXIT
bad=0
check() { # check NAME COMMAND...
	local name=$1; shift
	if "$@" >"$dir/log" 2>&1; then echo "ok - $name"; else echo "not ok - $name"; cat "$dir/log"; bad=1; fi
}
make_here() { env -u MAKEFLAGS -u MAKELEVEL make -s B="${BUILD#"$PWD"/}" DESTDIR="$dir/root" PREFIX=/opt/nl "$@"; }
listing() { (cd "$dir/root" && find . -type f -printf '%m %P\n' | sort -k 2); }

check "make install" make_here install
listing >"$dir/got"
cat >"$dir/want" <<'END'
755 opt/nl/libexec/runtime-lite/monitor
755 opt/nl/libexec/runtime-lite/pull
644 opt/nl/lib/systemd/system/kubelet-lite.service
644 opt/nl/lib/systemd/system/proxy-lite.service
644 opt/nl/lib/systemd/system/runtime-lite.service
755 opt/nl/sbin/kubelet-lite
755 opt/nl/sbin/proxy-lite
755 opt/nl/sbin/runtime-lite
644 opt/nl/share/doc/kubelet-lite/examples/web-2.yaml
644 opt/nl/share/doc/kubelet-lite/examples/web-service.yaml
644 opt/nl/share/doc/kubelet-lite/examples/web.yaml
644 opt/nl/share/man/man7/node-lite.7
644 opt/nl/share/man/man8/kubelet-lite.8
644 opt/nl/share/man/man8/proxy-lite.8
644 opt/nl/share/man/man8/runtime-lite.8
END
grep -v /examples/ "$dir/want" | sort -k 2 >"$dir/want-sorted"
check "the usual files at the usual places" diff "$dir/want-sorted" <(grep -v /examples/ "$dir/got")
check "examples are there" grep -q '644 opt/nl/share/doc/kubelet-lite/examples/.*yaml' "$dir/got"
check "units start the installed programs" bash -c "grep -h ^ExecStart= '$dir'/root/opt/nl/lib/systemd/system/*.service | grep -c '^ExecStart=/opt/nl/sbin/[a-z]*-lite ' | grep -qx 3"
check "an installed program runs" "$dir/root/opt/nl/sbin/kubelet-lite" --version
check "make uninstall" make_here uninstall
check "nothing is left" bash -c "! find '$dir/root' -type f | grep ."
exit $bad

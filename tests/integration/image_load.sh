#!/bin/bash
# image_load.sh - archives into the image store: every format, trees compared with tar's, whiteouts as overlayfs shows them,
# layers that try to get out.
set -u
if [ -z "${IMAGE_TEST_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "skip - image_load: needs root"; exit 0; }
	IMAGE_TEST_INSIDE=1 exec unshare -m -n --propagation private bash "$0" "$@"
fi
here=$(dirname "$0")
fakes=$here/../fakes
# shellcheck source=tests/integration/lib-image.sh
. "$here/lib-image.sh"
tool_find
busybox_image=$here/../../packaging/tools/make-busybox-image.sh

# Formats.
$busybox_image --name demo/web:1 --web "$dir/docker.tar" >"$dir/docker.id"
$busybox_image --name demo/web:2 --web --oci "$dir/oci.tar" >"$dir/oci.id"
is "docker-archive" docker.io/demo/web:1 load "$dir/docker.tar"
has "its id is what the maker said" "$(cat "$dir/docker.id")" tool find demo/web:1
is "OCI layout in a tar" docker.io/demo/web:2 load "$dir/oci.tar"
has "with its manifest's digest" "digest=docker.io/demo/web@sha256:" tool find demo/web:2
$busybox_image --name demo/web:1 --web "$dir/again.tar" >/dev/null
check "the busybox image is reproducible" cmp "$dir/docker.tar" "$dir/again.tar"
fresh
mkdir "$dir/unpacked"
tar -C "$dir/unpacked" -xf "$dir/oci.tar"
is "OCI layout as a directory" docker.io/demo/web:2 load "$dir/unpacked"
gzip -c "$dir/docker.tar" >"$dir/docker.tar.gz"
is "docker-archive, gzip" docker.io/demo/web:1 load "$dir/docker.tar.gz"
zstd -q -c "$dir/docker.tar" >"$dir/docker.tar.zst"
is "docker-archive, zstd" docker.io/demo/web:1 load "$dir/docker.tar.zst"
is "standard input" docker.io/demo/web:1 eval 'load - <"$dir/docker.tar"'
is "standard input through a pipe, gzip" docker.io/demo/web:1 eval 'cat "$dir/docker.tar.gz" | load -'
is "a layer for each image" 1 count layers
# Several in one archive, and one without a name.
python3 - "$dir/docker.tar" "$dir/many.tar" "$dir/nameless.tar" <<'END'
import json, sys, tarfile, io
source, many, nameless = sys.argv[1:]
with tarfile.open(source) as t:
    files = {m.name: t.extractfile(m).read() for m in t if m.isfile()}
image = json.loads(files["manifest.json"])[0]
def write(path, manifest):
    with tarfile.open(path, "w") as t:
        for name, data in dict(files, **{"manifest.json": json.dumps(manifest).encode()}).items():
            info = tarfile.TarInfo(name); info.size = len(data)
            t.addfile(info, io.BytesIO(data))
write(many, [dict(image, RepoTags=["one:1", "two:2"]), dict(image, RepoTags=["three:3"])])
write(nameless, [dict(image, RepoTags=None)])
END
is "several images and names in one archive" "docker.io/library/one:1 docker.io/library/two:2 docker.io/library/three:3" \
	eval 'load "$dir/many.tar" | xargs'
fresh
is "an image without a name is known by its id" "$(cat "$dir/docker.id")" load "$dir/nameless.tar"
is "or gets the name that is given" docker.io/library/given:1 load "$dir/nameless.tar" given:1
# What is none of that.
fails "no such file" "NotFound: open $dir/nosuch: No such file" load "$dir/nosuch"
echo hello >"$dir/text"
fails "a text file" "not a tar archive" load "$dir/text"
: >"$dir/empty"
fails "an empty file" "it is empty, or no tar archive" load "$dir/empty"
tar -C "$dir" -cf "$dir/plain.tar" text
fails "some tar archive" "neither an OCI layout (no oci-layout and index.json) nor a docker-archive (no manifest.json)" load "$dir/plain.tar"
mkdir "$dir/nothing"
fails "an empty directory" "neither an OCI layout" load "$dir/nothing"
head -c 1000000 "$dir/docker.tar" >"$dir/cut.tar"
fails "a truncated archive" "the archive is truncated" load "$dir/cut.tar"
head -c 500000 "$dir/docker.tar.gz" >"$dir/cut.tar.gz"
fails "a truncated gzip" "the compressed stream is truncated" load "$dir/cut.tar.gz"
bzip2 -c "$dir/docker.tar" >"$dir/docker.tar.bz2" 2>/dev/null && fails "bzip2" "bzip2; only gzip and zstd" load "$dir/docker.tar.bz2"
cp -r "$dir/unpacked" "$dir/damaged"
for blob in "$dir"/damaged/blobs/sha256/*; do printf x | dd of="$blob" bs=1 seek=20 conv=notrunc 2>/dev/null; done
fails "an OCI layout with damaged blobs" "is not what its name says" load "$dir/damaged"
cp -r "$dir/unpacked" "$dir/halved"
rm "$dir/halved/$(cd "$dir/halved" && ls -S blobs/sha256/* | head -n 1)"
fresh
fails "an OCI layout without its layer" "there is no file \"blobs/sha256/" load "$dir/halved"
mkdir -p "$dir/evil-layout/blobs/sha256"
cp "$dir/unpacked/oci-layout" "$dir/evil-layout"
ln -s /etc/passwd "$dir/evil-layout/index.json"
fails "an OCI layout whose index is a link to the node's files" "neither an OCI layout" load "$dir/evil-layout"
clean_after "archives that were refused"

# The tree is what tar makes of the same archive.
src=$dir/src
mkdir -p "$src"/{bin,etc,var/empty,tmp,"sp ace"} "$src/$(printf 'd%.0s' {1..120})/$(printf 'e%.0s' {1..120})"
echo one >"$src/bin/tool"; chmod 4755 "$src/bin/tool"
ln "$src/bin/tool" "$src/bin/tool2"; ln "$src/bin/tool" "$src/etc/tool3"
echo caps >"$src/bin/ping"; chown 0:0 "$src/bin/ping"
echo owned >"$src/etc/owned"; chown 4242:100000 "$src/etc/owned"
echo none >"$src/etc/secret"; chmod 000 "$src/etc/secret"; chmod 000 "$src/var/empty"
chmod 1777 "$src/tmp"; chmod 2750 "$src/sp ace"; chown 5:6 "$src/sp ace"
ln -s /nowhere "$src/etc/dangling"; ln -s ../bin/tool "$src/etc/up"; ln -s "$(printf 'l%.0s' {1..200})" "$src/long-link"
mkfifo "$src/var/fifo"; mknod "$src/var/null" c 1 3; mknod "$src/var/disk" b 8 1; chmod 640 "$src/var/disk"
echo unicode >"$src/grüße-файл"
echo long >"$src/$(printf 'd%.0s' {1..120})/$(printf 'e%.0s' {1..120})/$(printf 'f%.0s' {1..120})"
: >"$src/empty"
head -c 3000000 /dev/urandom >"$src/big"
touch -d '2001-02-03 04:05:06.123456789' "$src/etc/owned" "$src/var/fifo"; touch -h -d '1969-12-31 23:00:00' "$src/etc/up"
python3 - "$src" <<'END'
import os, sys
src = sys.argv[1]
os.setxattr(src + "/bin/ping", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
os.setxattr(src + "/etc/owned", "user.note", b"hello\0world")
os.setxattr(src + "/sp ace", "user.dir", b"x" * 1000)
END
touch -d '2010-01-01' "$src/etc" "$src/var"
# layer_image NAME TAR...: a docker-archive of these layers.
layer_image() {
	rm -rf "$dir/layout.$1"
	python3 "$fakes/layout.py" "$dir/layout.$1" "$1:1" "${@:2}" >/dev/null
}
for format in pax gnu; do
	xattrs=; [ $format = pax ] && xattrs="--xattrs --xattrs-include=*"
	# shellcheck disable=SC2086
	tar -C "$src" --format=$format $xattrs --numeric-owner -cf "$dir/$format.tar" . 2>/dev/null
	rm -rf "$dir/reference"; mkdir "$dir/reference"
	# shellcheck disable=SC2086
	tar -C "$dir/reference" $xattrs --numeric-owner --same-owner -xpf "$dir/$format.tar"
	layer_image $format "$dir/$format.tar"
	load "$dir/layout.$format" >/dev/null
	lower=$(tool acquire $format:1 c | tee "$dir/lower"; tool release c)
	check "a tree with everything in it, $format format: as tar unpacks it" diff <(python3 "$fakes/tree.py" "$dir/reference") \
		<(python3 "$fakes/tree.py" "${lower%%$'\n'*}")
done

# Whiteouts: layers stacked by overlayfs show what the archives mean.
mkdir -p "$dir/l1/keep" "$dir/l1/opaque/sub" "$dir/l1/gone" "$dir/l1/replaced" "$dir/l1/tmp"
echo 1 >"$dir/l1/keep/a"; echo 1 >"$dir/l1/keep/b"; echo 1 >"$dir/l1/opaque/old"; echo 1 >"$dir/l1/gone/x"; echo 1 >"$dir/l1/replaced/x"
echo 1 >"$dir/l1/file"; ln -s nowhere "$dir/l1/link"; chmod 1777 "$dir/l1/tmp"; chmod 711 "$dir/l1"
tar -C "$dir/l1" --numeric-owner -cf "$dir/l1.tar" .
python3 - "$dir/l2.tar" "$dir/l3.tar" <<'END'
import io, sys, tarfile
def write(path, entries):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, extra in entries:
            i = tarfile.TarInfo(name)
            i.mode = 0o755 if kind == "d" else 0o644
            if kind == "d": i.type = tarfile.DIRTYPE
            if kind == "l": i.type, i.linkname = tarfile.SYMTYPE, extra
            data = extra.encode() if kind == "f" else b""
            i.size = len(data)
            t.addfile(i, io.BytesIO(data))
write(sys.argv[1], [("keep/.wh.a", "f", ""), ("opaque", "d", ""), ("opaque/.wh..wh..opq", "f", ""), ("opaque/new", "f", "2"),
    (".wh.gone", "f", ""), ("replaced", "l", "keep"), ("link", "l", "file"), ("tmp/x", "f", "2"), (".wh.nosuch", "f", "")])
write(sys.argv[2], [("gone", "d", ""), ("gone/back", "f", "3"), ("replaced", "d", ""), ("replaced/again", "f", "3"), ("keep/a", "f", "3"),
    (".wh.file", "f", ""), ("opaque/third", "f", "3")])
END
layer_image stack "$dir/l1.tar" "$dir/l2.tar:zstd" "$dir/l3.tar:plain"
load "$dir/layout.stack" >/dev/null
tool acquire stack:1 c >"$dir/lower"
mkdir "$dir/merged"
if LIBMOUNT_FORCE_MOUNT2=always mount -t overlay overlay -o "lowerdir=$(paste -sd: "$dir/lower")" "$dir/merged"; then
	show() { (cd "$dir/merged" && find . -mindepth 1 \( -type f -printf '%P=' -exec cat {} \; -printf '\n' \) -o \( -type l -printf '%P->%l\n' \) -o -printf '%P/\n' | LC_ALL=C sort | xargs); }
	is "whiteouts and opaque directories as overlayfs shows them" \
		"gone/ gone/back=3 keep/ keep/a=3 keep/b=1 link->file opaque/ opaque/new=2 opaque/third=3 replaced/ replaced/again=3 tmp/ tmp/x=2" \
		eval "show | sed 's/= /=/g'"
	is "a directory that a layer only passes through keeps its mode" 1777 stat -c %a "$dir/merged/tmp"
	is "and so does the root" 711 stat -c %a "$dir/merged"
	umount "$dir/merged"
else
	echo "skip - whiteouts by overlayfs: cannot mount overlay here"
fi
tool release c

# Layers that try to get out.
evil=/tmp/image-evil
rm -rf "$evil"
before=$(sha256sum /etc/passwd; stat -c '%h %a %u %Y' /etc/passwd /dev/null)
while IFS=$'\t' read -r name want; do
	fresh
	python3 "$fakes/hostile.py" "$name" "$dir/hostile.tar"
	if [ "$want" = ok ]; then
		is "hostile layer, harmless inside: $name" "docker.io/library/hostile:$name" load "$dir/hostile.tar"
	else
		fails "hostile layer: $name" "$want" load "$dir/hostile.tar"
		clean_after "$name"
	fi
	[ ! -e "$evil" ] || { not_ok "$name wrote outside"; rm -rf "$evil"; }
done < <(python3 "$fakes/hostile.py" list)
is "nothing outside has changed" "$before" eval "sha256sum /etc/passwd; stat -c '%h %a %u %Y' /etc/passwd /dev/null"

# Bombs.
python3 - "$dir/bomb.tar" <<'END'
import tarfile, sys
class Zeros:
    def __init__(self, n): self.n = n
    def read(self, k): k = min(k, self.n); self.n -= k; return bytes(k)
with tarfile.open(sys.argv[1], "w") as t:
    i = tarfile.TarInfo("zeros"); i.size = 300 << 20
    t.addfile(i, Zeros(i.size))
END
for how in gzip zstd; do
	fresh
	rm -rf "$dir/layout.bomb"
	python3 "$fakes/layout.py" "$dir/layout.bomb" bomb:1 "$dir/bomb.tar:$how" >/dev/null
	fails "a $how bomb" "a compression bomb" load "$dir/layout.bomb"
	clean_after "a $how bomb"
done

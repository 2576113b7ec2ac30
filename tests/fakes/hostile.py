#!/usr/bin/env python3
"""hostile.py CASE OUTPUT - purpose: a docker-archive whose only layer tries something. CASE "list" names the cases.

Each case has the text that the refusal must hold, or "ok" if the layer is harmless in the end (everything stays inside)."""
import hashlib, io, json, sys, tarfile


def entry(name, kind=tarfile.REGTYPE, data=b"", link="", mode=0o644, **more):
    t = tarfile.TarInfo(name)
    t.type, t.linkname, t.mode, t.size = kind, link, mode, len(data)
    for key, value in more.items():
        setattr(t, key, value)
    return t, data


SYM, HARD, DIR, CHR, BLK = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE
E = b"evil"
cases = {
    "dotdot": ("leaves the root filesystem", [entry("../../../../../../tmp/image-evil", data=E)]),
    "absolute": ("ok", [entry("/tmp/image-evil", data=E)]),
    "absolute-dotdot": ("leaves the root filesystem", [entry("/../../../../../../tmp/image-evil", data=E)]),
    "symlink-parent": ("ok", [entry("x", SYM, link="/tmp"), entry("x/image-evil", data=E)]),
    "symlink-up": ("ok", [entry("x", SYM, link="../../../../../../../../tmp"), entry("x/image-evil", data=E)]),
    "symlink-chain": ("ok", [entry("a", SYM, link="b/.."), entry("b", SYM, link="/.."), entry("a/image-evil", data=E)]),
    "symlink-replaced": ("ok", [entry("d", DIR, mode=0o755), entry("d/f", data=E), entry("d", SYM, link="/tmp"), entry("d/image-evil", data=E)]),
    "symlink-file": ("ok", [entry("f", SYM, link="/tmp/image-evil"), entry("f", data=E)]),
    "hardlink-out": ("leaves the root filesystem", [entry("h", HARD, link="../../../../../../etc/passwd"), entry("h", data=E)]),
    "hardlink-absolute": ("no file of this layer", [entry("h", HARD, link="/etc/passwd")]),
    "hardlink-through-symlink": ("no file of this layer", [entry("e", SYM, link="/etc"), entry("h", HARD, link="e/passwd")]),
    "hardlink-symlink": ("ok", [entry("s", SYM, link="/etc/passwd"), entry("h", HARD, link="s"), entry("h", data=E)]),
    "whiteout-up": ("whiteout of nothing", [entry(".wh...")]),
    "whiteout-dot": ("whiteout of nothing", [entry("d/.wh..")]),
    "whiteout-out": ("leaves the root filesystem", [entry("../../.wh.etc")]),
    "opaque-through-symlink": ("ok", [entry("x", SYM, link="/tmp"), entry("x/.wh..wh..opq")]),
    "dev-symlink": ("ok", [entry("dev", SYM, link="/tmp"), entry("dev/image-evil", data=E)]),
    "proc-symlink": ("ok", [entry("p", SYM, link="/proc/self/root/tmp"), entry("p/image-evil", data=E)]),
    "magic-link": ("ok", [entry("p", SYM, link="/proc/1/cwd"), entry("p/image-evil", data=E)]),
    "device": ("ok", [entry("sda", BLK, mode=0o666, devmajor=8, devminor=0), entry("mem", CHR, mode=0o666, devmajor=1, devminor=1)]),
    "write-to-device": ("ok", [entry("n", CHR, mode=0o666, devmajor=1, devminor=3), entry("n", data=E)]),
    "below-device": ("is not a directory", [entry("n", CHR, devmajor=1, devminor=3), entry("n/x", data=E)]),
    "setuid-root": ("ok", [entry("su", data=E, mode=0o4755)]),
    "long-part": ("longer than 255 bytes", [entry("d/" + "n" * 300, data=E)]),
    "long-name": ("directories deep", [entry("d/" * 2000 + "f", data=E)]),
    "very-long-name": ("more than 4096 bytes", [entry("d/" * 3000 + "f", data=E)]),
    "newline": ("ok", [entry("a\nb", data=E)]),
    "symlink-loop": ("links", [entry("a", SYM, link="a"), entry("a/f", data=E)]),
    "duplicate": ("ok", [entry("f", data=b"1"), entry("f", data=b"2"), entry("f", DIR), entry("f/g", data=E), entry("f", data=b"3")]),
    "sparse": ("sparse files are not supported", [entry("f", data=E, pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})]),
    "overlay-redirect": ("ok", [entry("d", DIR, pax_headers={"SCHILY.xattr.trusted.overlay.redirect": "/etc", "SCHILY.xattr.trusted.overlay.opaque": "y"})]),
    "huge-uid": ("out of range", [entry("f", data=E, pax_headers={"uid": "4294967295"})]),
    "negative-size": ("out of range", [entry("f", data=E, pax_headers={"size": "-1"})]),
}
if sys.argv[1] == "list":
    for name, (want, _) in cases.items():
        print(name + "\t" + want)
    sys.exit()
layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
    for info, data in cases[sys.argv[1]][1]:
        tar.addfile(info, io.BytesIO(data))
layer = layer.getvalue()
config = json.dumps({"os": "linux", "architecture": "", "config": {},
                     "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
manifest = json.dumps([{"Config": "config.json", "RepoTags": ["hostile:" + sys.argv[1]], "Layers": ["layer.tar"]}]).encode()
with tarfile.open(sys.argv[2], "w") as tar:
    for name, data in (("layer.tar", layer), ("config.json", config), ("manifest.json", manifest)):
        info, _ = entry(name, data=data)
        tar.addfile(info, io.BytesIO(data))

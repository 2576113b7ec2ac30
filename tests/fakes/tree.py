#!/usr/bin/env python3
"""tree.py DIR [--no-times] - purpose: print everything about a tree, one line for each file, so that two can be compared with diff:
name, type, mode, owner, size, time, device, link target, content, extended attributes, which names are one file."""
import hashlib, os, stat, sys

root, times, first = sys.argv[1], "--no-times" not in sys.argv, {}


def line(path, name):
    s = os.lstat(path)
    kind = stat.S_IFMT(s.st_mode)
    out = ["%r" % name, "%o" % s.st_mode, "%d:%d" % (s.st_uid, s.st_gid)]
    if times:
        out.append("%d" % s.st_mtime_ns)
    if kind == stat.S_IFREG:
        with open(path, "rb") as f:
            out.append("%d %s" % (s.st_size, hashlib.sha256(f.read()).hexdigest()[:16]))
    if kind == stat.S_IFLNK:
        out.append("-> " + os.readlink(path))
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        out.append("%d,%d" % (os.major(s.st_rdev), os.minor(s.st_rdev)))
    if kind != stat.S_IFDIR and s.st_nlink > 1:
        out.append("= %r" % first.setdefault(s.st_ino, name))
    if kind != stat.S_IFLNK:
        for attribute in sorted(os.listxattr(path, follow_symlinks=False)):
            if not attribute.startswith("trusted.overlay."):
                out.append("%s=%s" % (attribute, os.getxattr(path, attribute, follow_symlinks=False).hex()))
    print(" ".join(out))


line(root, ".")
for base, dirs, files in os.walk(root):
    dirs.sort()
    for name in sorted(dirs + files):
        path = os.path.join(base, name)
        line(path, os.path.relpath(path, root))

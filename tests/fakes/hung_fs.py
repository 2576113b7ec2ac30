#!/usr/bin/env python3
"""hung_fs.py - a file system that never answers, as a network file system whose server is gone. hung_fs.py DIRECTORY: mounts it
there and waits; when this process ends every call that hangs in it fails."""
import ctypes
import os
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
if libc.mount(b"hung", sys.argv[1].encode(), b"fuse", 0, options.encode()) < 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
signal.pause()

# Libraries of runtime-lite, and its two helper programs: the per-pod monitor (static, small) and the image puller.
LIBS_runtime-lite := libseccomp libcap libmnl libnftnl
PROGRAMS_DIRS_runtime-lite := monitor pull

# Libraries of runtime-lite, and its two helper programs: the per-pod monitor (static, small) and the image puller.
LIBS_runtime-lite := libseccomp libcap libmnl libnftnl
PROGRAMS_DIRS_runtime-lite := monitor pull

# The monitor: static, not PIE, and on the common architectures with a C library of its own (fewest dirty pages, see
# monitor/libc/libc.h); without sanitizer runtimes: UBSan traps there.
MONITOR := $(B)/libexec/runtime-lite/monitor
MONITOR_SRC := $(wildcard runtime-lite/monitor/*.c) runtime-lite/spec/launch_codec.c common/base/error.c
MONITOR_ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
MONITOR_CFLAGS = $(BASE_CFLAGS) -Os -g -fno-pie -fstack-protector-strong -fno-asynchronous-unwind-tables \
            $(if $(SANITIZE),-fsanitize=undefined -fsanitize-undefined-trap-on-error) $(CPPFLAGS)
MONITOR_LDFLAGS := -static -no-pie -Wl,--gc-sections,-z,noseparate-code,--build-id
ifneq ($(filter x86_64 aarch64,$(MONITOR_ARCH)),)
MONITOR_SRC += $(wildcard runtime-lite/monitor/libc/*.c)
# Fortified functions are glibc's; dpkg-buildflags asks for them.
MONITOR_CFLAGS += -ffreestanding -fno-builtin -U_FORTIFY_SOURCE -fno-tree-loop-distribute-patterns \
            $(if $(filter x86_64,$(MONITOR_ARCH)),-mstack-protector-guard=global)
MONITOR_LDFLAGS += -nostdlib -Wl,-z,norelro
endif
$(B)/monitor/%.o: %.c runtime-lite/daemon.mk
	@mkdir -p $(@D)
	$(CC) $(MONITOR_CFLAGS) -c -o $@ $<
$(MONITOR): $(MONITOR_SRC:%.c=$(B)/monitor/%.o)
	@mkdir -p $(@D)
	$(CC) $(MONITOR_LDFLAGS) -o $@.new $^ $(if $(filter -nostdlib,$(MONITOR_LDFLAGS)),-lgcc)
	mv -f $@.new $@
all runtime-lite: $(MONITOR)

# The image puller: libcurl, zlib and libzstd are loaded there, never into the daemon.
LIBS_runtime-lite += zlib libzstd
PULL := $(B)/libexec/runtime-lite/pull
$(PULL): $(patsubst %.c,$(B)/%.o,$(wildcard runtime-lite/pull/*.c)) $(B)/libruntime-lite.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pc,libcurl libseccomp libcap zlib libzstd jansson) -lpthread
all runtime-lite: $(PULL)
# What integration tests of images use instead of a daemon.
check-all check-integration: $(B)/tests/unit/runtime-lite/image/store_tool
# Fuzzers of what images bring.
$(B)/tests/fuzz/image_%: $(B)/tests/fuzz/image_%.o $(patsubst %.c,$(B)/%.o,$(wildcard runtime-lite/image/*.c)) $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(call pc,$(LIBS_common) zlib libzstd) -lm -lpthread
# And of what streaming clients send.
$(B)/tests/fuzz/stream_%: $(B)/tests/fuzz/stream_%.o $(patsubst %,$(B)/runtime-lite/stream/%.o,channels forward forward_channels forward_spdy session session_spdy session_websocket) $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(call pc,$(LIBS_common)) -lm

# node-lite.  make: build   make check: all tests   make demo   make install DESTDIR= PREFIX=   make deb
# Variants in build directories of their own: SANITIZE=1 (ASan+UBSan), COVERAGE=1, FUZZ=1 (clang, libFuzzer).
VERSION  := $(shell sed -n '1s/.*(\([^)-]*\).*/\1/p' packaging/debian/changelog)
DAEMONS  := runtime-lite kubelet-lite proxy-lite
VARIANT  := $(if $(SANITIZE),-sanitize)$(if $(COVERAGE),-coverage)$(if $(FUZZ),-fuzz)
B        := build$(VARIANT)
PREFIX   ?= /usr/local
CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Werror -Wshadow -Wvla -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
            -Wno-missing-field-initializers -Wno-format-truncation -Wno-unknown-warning-option
comma    := ,
HARDEN   := -fstack-protector-strong $(if $(VARIANT),,-D_FORTIFY_SOURCE=2)
INSTRUMENT := $(if $(SANITIZE),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer) \
            $(if $(COVERAGE),--coverage) $(if $(FUZZ),-fsanitize=fuzzer-no-link$(comma)address$(comma)undefined)
ifdef FUZZ
CC       := clang
endif
BASE_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DNODE_LITE_VERSION='"$(VERSION)"' $(WARNINGS) -I. -I$(B)/gen -Ulinux \
            -ffunction-sections -fdata-sections -MMD -MP
ALL_CFLAGS = $(BASE_CFLAGS) $(CFLAGS) $(HARDEN) -fPIE $(INSTRUMENT) $(CPPFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,--as-needed,--gc-sections $(INSTRUMENT) $(LDFLAGS)
pc        = $(shell pkg-config --libs $(1))

.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

# Flags come out of the manual pages; CRI messages out of our .proto.
GEN := $(patsubst man/%.8,$(B)/gen/%.opts.h,$(wildcard man/*.8)) $(B)/gen/cri.pb-c.h
$(B)/gen/%.opts.h: man/%.8 packaging/tools/man2opts.awk
	@mkdir -p $(@D)
	awk -v daemon=$* -f packaging/tools/man2opts.awk $< >$@
$(B)/gen/cri.pb-c.c: common/cri/cri.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=common/cri --c_out=$(B)/gen cri.proto
$(B)/gen/cri.pb-c.h: $(B)/gen/cri.pb-c.c
$(B)/gen/cri.pb-c.o: $(B)/gen/cri.pb-c.c
	$(CC) $(filter-out -W%,$(ALL_CFLAGS)) -w -c -o $@ $<

$(B)/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# common/ is one archive, so that a daemon links only the modules that it uses.
COMMON_O := $(patsubst %.c,$(B)/%.o,$(wildcard common/*/*.c)) $(B)/gen/cri.pb-c.o
$(B)/libcommon.a: $(COMMON_O)
	@rm -f $@
	$(AR) rcs $@ $^

# A daemon is its folder: all but main.c is an archive too (what its unit tests link); its .mk names libraries and
# says which sub-folders are programs of their own (PROGRAMS_DIRS).
LIBS_common := libuv jansson libnghttp2 libprotobuf-c yaml-0.1 zlib
include $(DAEMONS:%=%/daemon.mk)
define daemon
$(1)_SRC := $$(filter-out $(1)/main.c $$(foreach d,$$(PROGRAMS_DIRS_$(1)),$$(wildcard $(1)/$$(d)/*.c)),$$(wildcard $(1)/*.c $(1)/*/*.c))
$(B)/lib$(1).a: $$(patsubst %.c,$(B)/%.o,$$($(1)_SRC))
	@rm -f $$@
	$$(AR) rcs $$@ $$^
$(B)/bin/$(1): $(B)/$(1)/main.o $(B)/lib$(1).a $(B)/libcommon.a
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(call pc,$$(LIBS_common) $$(LIBS_$(1))) -lm
$(B)/tests/unit/$(1)/%: $(B)/tests/unit/$(1)/%.o $(B)/lib$(1).a $(B)/libcommon.a
	$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(call pc,check $$(LIBS_common) $$(LIBS_$(1))) -lm
endef
$(foreach d,$(DAEMONS),$(eval $(call daemon,$(d))))
$(B)/tests/unit/common/%: $(B)/tests/unit/common/%.o $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pc,check $(LIBS_common)) -lm

# make FUZZ=1 build-fuzz/tests/fuzz/grpc_fuzz
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(call pc,$(LIBS_common)) -lm
$(B)/tests/fuzz/proxy_%: $(B)/tests/fuzz/proxy_%.o $(B)/libproxy-lite.a $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(call pc,$(LIBS_common) $(LIBS_proxy-lite)) -lm
$(B)/tests/fuzz/kubelet_%: $(B)/tests/fuzz/kubelet_%.o $(B)/libkubelet-lite.a $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(call pc,$(LIBS_common)) -lm

all: $(DAEMONS:%=$(B)/bin/%)
runtime-lite: $(B)/bin/runtime-lite
kubelet-lite: $(B)/bin/kubelet-lite
proxy-lite: $(B)/bin/proxy-lite

UNIT_TESTS := $(patsubst %.c,$(B)/%,$(shell find tests/unit -name '*_test.c' 2>/dev/null))
unit-tests: $(UNIT_TESTS)
check-unit: all $(UNIT_TESTS)
	packaging/tools/run-tests.sh $(B) unit
check-integration: all
	packaging/tools/run-tests.sh $(B) integration
# check, demo and check-guest set a fresh machine up by themselves; the rest of each runs in a second make, which then
# finds the libraries, on all processors unless -j said otherwise.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
deps:
	packaging/tools/install-build-deps.sh
check: deps
	$(MAKE) $(PARALLEL) check-all
check-all: all $(UNIT_TESTS)
	packaging/tools/run-tests.sh $(B) unit lint integration
demo: deps
	$(MAKE) $(PARALLEL) all
	packaging/tools/demo.sh
check-guest: deps
	$(MAKE) deb
	tests/guest/run.sh $(B)
bench: deps
	$(MAKE) $(PARALLEL) all $(B)/tests/bench/cri_bench
	tests/bench/run.sh $(B)
$(B)/tests/bench/%: $(B)/tests/bench/%.o $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pc,$(LIBS_common)) -lm
$(B)/tests/bench/proxy_%: $(B)/tests/bench/proxy_%.o $(B)/libproxy-lite.a $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pc,$(LIBS_common) $(LIBS_proxy-lite)) -lm
# Servers, clients and an API server that integration tests drive.
$(B)/tests/fakes/%: $(B)/tests/fakes/%.o $(B)/libcommon.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call pc,$(LIBS_common)) -lm

clean:
	rm -rf build build-*
.PHONY: all deps check check-all demo check-guest bench check-unit check-integration unit-tests clean $(DAEMONS)
-include packaging/packaging.mk
-include $(shell find $(B) -name '*.d' 2>/dev/null)

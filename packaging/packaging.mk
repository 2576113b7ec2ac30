# Installing, Debian packages, fuzzing. Included by the top Makefile.
#   make install DESTDIR= PREFIX=/usr/local      make uninstall      make deb      make fuzz FUZZ_SECONDS=60      make lint
SBINDIR     ?= $(PREFIX)/sbin
LIBEXECDIR  ?= $(PREFIX)/libexec
MANDIR      ?= $(PREFIX)/share/man
DOCDIR      ?= $(PREFIX)/share/doc/kubelet-lite
UNITDIR     ?= $(PREFIX)/lib/systemd/system
INSTALL     ?= install

install: all
	$(INSTALL) -d $(DESTDIR)$(SBINDIR) $(DESTDIR)$(LIBEXECDIR)/runtime-lite $(DESTDIR)$(MANDIR)/man7 $(DESTDIR)$(MANDIR)/man8 \
		$(DESTDIR)$(UNITDIR) $(DESTDIR)$(DOCDIR)/examples
	$(INSTALL) -m 755 $(DAEMONS:%=$(B)/bin/%) $(DESTDIR)$(SBINDIR)
	$(INSTALL) -m 755 $(B)/libexec/runtime-lite/monitor $(B)/libexec/runtime-lite/pull $(DESTDIR)$(LIBEXECDIR)/runtime-lite
	$(INSTALL) -m 644 man/*.8 $(DESTDIR)$(MANDIR)/man8
	$(INSTALL) -m 644 man/*.7 $(DESTDIR)$(MANDIR)/man7
	$(INSTALL) -m 644 packaging/examples/*.yaml $(DESTDIR)$(DOCDIR)/examples
	for d in $(DAEMONS); do \
		sed 's|@SBINDIR@|$(SBINDIR)|g' packaging/systemd/$$d.service >$(DESTDIR)$(UNITDIR)/$$d.service && \
		chmod 644 $(DESTDIR)$(UNITDIR)/$$d.service || exit 1; \
	done

uninstall:
	rm -f $(DAEMONS:%=$(DESTDIR)$(SBINDIR)/%) $(DAEMONS:%=$(DESTDIR)$(MANDIR)/man8/%.8) $(DESTDIR)$(MANDIR)/man7/node-lite.7 \
		$(DAEMONS:%=$(DESTDIR)$(UNITDIR)/%.service)
	rm -rf $(DESTDIR)$(LIBEXECDIR)/runtime-lite $(DESTDIR)$(DOCDIR)

# The packages are built from a clean export of HEAD, so that nothing uncommitted gets into them.
DEB_TREE := $(B)/deb/node-lite-$(VERSION)
deb:
	packaging/tools/install-deb-deps.sh
	rm -rf $(B)/deb
	mkdir -p $(DEB_TREE)
	git -c safe.directory='*' archive HEAD | tar -x -C $(DEB_TREE)
	cp -r $(DEB_TREE)/packaging/debian $(DEB_TREE)/debian
	cd $(DEB_TREE) && DEB_BUILD_OPTIONS="nocheck parallel=$$(nproc) $$DEB_BUILD_OPTIONS" MAKEFLAGS= dpkg-buildpackage -us -uc -b
	rm -rf $(DEB_TREE)
	ls -l $(B)/deb/*.deb

# Each harness for FUZZ_SECONDS (in a build directory of its own, by clang). The corpus in the tree is read, not written.
FUZZ_SECONDS ?= 60
FUZZERS := $(notdir $(patsubst %.c,%,$(wildcard tests/fuzz/*_fuzz.c)))
fuzz:
	@command -v clang >/dev/null || { echo "make fuzz needs clang: apt-get install clang"; exit 1; }
	$(MAKE) FUZZ=1 $(FUZZERS:%=build-fuzz/tests/fuzz/%)
	packaging/tools/run-fuzzers.sh build-fuzz $(FUZZ_SECONDS) $(FUZZERS)

lint: all
	packaging/tools/run-tests.sh $(B) lint

.PHONY: install uninstall deb fuzz lint

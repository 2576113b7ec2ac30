# Libraries of proxy-lite beyond those of common/.
LIBS_proxy-lite := libnftnl libmnl
PROGRAMS_DIRS_proxy-lite :=

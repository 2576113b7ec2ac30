# Libraries of kubelet-lite beyond those of common/.
LIBS_kubelet-lite :=
PROGRAMS_DIRS_kubelet-lite :=

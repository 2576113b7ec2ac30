/*
 * pod_files.h - purpose: write the files of a pod that its containers see: resolv.conf, hosts, hostname.
 */
#pragma once
#include "runtime-lite/cri/service.h"

int pod_files_write(const struct service *svc, const struct sandbox *s, struct error *err) MUST_USE;

/*
 * handlers.h - purpose: every method of the CRI that is served, by the file that has it.
 */
#pragma once
#include "runtime-lite/cri/service.h"

#define HANDLER(name) int name(struct rpc_call *call, const void *request, ProtobufCMessage **ret_reply, struct error *err)
#define STREAM_HANDLER(name) void name(struct rpc_call *call, const void *request, struct rpc_stream *stream)

/* runtime.c */
HANDLER(runtime_version);
HANDLER(runtime_status);
HANDLER(runtime_config);
HANDLER(runtime_update_config);
/* sandbox_run.c */
HANDLER(sandbox_run);
/* sandbox_stop.c */
HANDLER(sandbox_stop);
HANDLER(sandbox_remove);
/* sandbox_query.c */
HANDLER(sandbox_status);
HANDLER(sandbox_list);
HANDLER(sandbox_update_resources);
/* container_create.c */
HANDLER(container_create);
/* container_start.c */
HANDLER(container_start);
/* container_stop.c */
STREAM_HANDLER(container_stop);
/* container_remove.c */
HANDLER(container_remove);
/* container_query.c */
HANDLER(container_status);
HANDLER(container_list);
/* container_update.c */
HANDLER(container_update);
HANDLER(container_reopen_log);
/* exec.c */
HANDLER(exec_sync);
/* stream.c */
HANDLER(stream_exec);
HANDLER(stream_attach);
HANDLER(stream_port_forward);
/* image.c */
HANDLER(image_list);
HANDLER(image_status);
HANDLER(image_pull_rpc);
HANDLER(image_remove);
HANDLER(image_fs_info);
/* stats.c */
HANDLER(stats_container);
HANDLER(stats_containers);
HANDLER(stats_sandbox);
HANDLER(stats_sandboxes);
/* events.c */
STREAM_HANDLER(events_subscribe);

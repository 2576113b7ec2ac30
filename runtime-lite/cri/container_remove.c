/* container_remove.c - purpose: RemoveContainer. A running one is killed, an unknown one is success. */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "runtime-lite/model/teardown.h"

HANDLER(container_remove)
{
	struct service *svc = call->context;
	const CRI(RemoveContainerRequest) *req = request;
	const struct teardown t = { svc->store, svc->images, svc->network };
	_cleanup_operation_ struct operation op = { 0 };
	_cleanup_container_ struct container *c = NULL;
	int r = store_get_container(svc->store, req->container_id, &c, err);
	bool gone = r < 0 && err->code == ERROR_NOT_FOUND;

	if (r == 0)
		r = operation_begin(&op, svc->store, c->sandbox, "RemoveContainer", service_cancelled, call, err);
	if (r == 0) {
		store_lock(svc->store);
		gone = map_get(&svc->store->containers, c->id) != c;
		store_unlock(svc->store);
	}
	if (r == 0 && !gone) {
		r = teardown_container(&t, c, err);
		if (r == 0)
			log_info("container %s removed", c->id);
	}
	if (r < 0 && !gone)
		return r;
	*ret_reply = &CRI_NEW(RemoveContainerResponse, remove_container_response)->base;
	return 0;
}

/* orphan.c - purpose: pods that run but that no object wants. */
#include "kubelet-lite/worker/orphan.h"

#include <errno.h>
#include <fcntl.h>

enum { SOURCE_MAX = 4096, MANIFEST_MAX = 10 * 1024 * 1024 };

static const char *label(size_t n, void *labels, const char *key)
{
	const char *v = message_map_get(n, labels, key);

	return v ? v : "";
}

static struct container *orphan_container(struct pod *pod, const CRI(Container) * c)
{
	const char *name = label(c->n_labels, c->labels, LABEL_CONTAINER_NAME);
	const char *hook = message_map_get(c->n_annotations, c->annotations, ANNOTATION_PRE_STOP);
	struct container *to = &pod->containers[pod->n_containers++];
	_cleanup_json_ json_t *tree = NULL;

	*to = (struct container){ .name = arena_strdup(&pod->arena, name), .kind = CONTAINER_REGULAR, .image = "" };
	to->termination_path = to->working_dir = to->stop_signal = "";
	to->security.run_as_user = -1;
	if (hook && json_read(hook, strlen(hook), false, &tree, NULL) == 0)
		to->pre_stop = handler_decode(&pod->arena, tree);
	return to;
}

struct pod *orphan_pod(
	const CRI(ListPodSandboxResponse) * sandboxes, const CRI(ListContainersResponse) * containers, const char *uid)
{
	struct pod *pod = xnew(struct pod);

	pod->uid = arena_strdup(&pod->arena, uid);
	pod->ns = pod->name = "";
	pod->grace_seconds = 30;
	pod->deletion_grace_seconds = -1;
	pod->restart = RESTART_NEVER;
	pod->os = pod->hostname = pod->subdomain = pod->hostname_override = pod->node_name = pod->service_account = "";
	pod->containers = arena_array(&pod->arena, containers->n_containers + 1, sizeof(*pod->containers));
	for (size_t i = 0; i < sandboxes->n_items; i++) {
		const CRI(PodSandbox) *s = sandboxes->items[i];
		const char *grace = message_map_get(s->n_annotations, s->annotations, ANNOTATION_GRACE);

		if (!str_eq(label(s->n_labels, s->labels, LABEL_POD_UID), uid))
			continue;
		pod->ns = arena_strdup(&pod->arena, label(s->n_labels, s->labels, LABEL_POD_NAMESPACE));
		pod->name = arena_strdup(&pod->arena, label(s->n_labels, s->labels, LABEL_POD_NAME));
		if (grace)
			pod->grace_seconds = strtoll(grace, NULL, 10);
	}
	for (size_t i = 0; i < containers->n_containers; i++) {
		const CRI(Container) *c = containers->containers[i];
		const char *name = label(c->n_labels, c->labels, LABEL_CONTAINER_NAME);

		if (!str_eq(label(c->n_labels, c->labels, LABEL_POD_UID), uid))
			continue;
		if (!*pod->name) {
			pod->ns = arena_strdup(&pod->arena, label(c->n_labels, c->labels, LABEL_POD_NAMESPACE));
			pod->name = arena_strdup(&pod->arena, label(c->n_labels, c->labels, LABEL_POD_NAME));
		}
		if (pod_container(pod, name) < 0)
			orphan_container(pod, c);
	}
	return pod;
}

/* Is the document, or an item of the List that it is, this pod? */
static bool names_pod(const json_t *document, const struct pod *pod)
{
	const json_t *items = json_object_get(document, "items");

	for (size_t i = 0; i < json_array_size(items); i++)
		if (names_pod(json_array_get(items, i), pod))
			return true;
	return str_eq(json_str_at(document, "kind", ""), "Pod") &&
	       str_eq(json_str_at(document, "metadata.name", ""), pod->name) &&
	       str_eq(json_str_at(document, "metadata.namespace", "default"), pod->ns);
}

bool orphan_held(const struct node *node, const struct pod *orphan)
{
	_cleanup_free_ char *path = xasprintf("%s/pods/%s/source", node->cri_node.root_dir, orphan->uid);
	_cleanup_free_ char *source = NULL, *text = NULL;
	_cleanup_json_ json_t *documents = NULL;
	size_t len;

	if (objects_get(node->objects, KIND_POD, orphan->ns, orphan->name))
		return false; /* there is another version of it */
	if (file_read(AT_FDCWD, path, SOURCE_MAX, &source, NULL, NULL) < 0 || !*source)
		return false;
	int r = file_read(AT_FDCWD, source, MANIFEST_MAX, &text, &len, NULL);
	if (r < 0)
		return r != -ENOENT;
	if (yaml_read(text, len, &documents, NULL) < 0)
		return true;
	/* It is in there, and yet it is no object: something about it is invalid. */
	for (size_t i = 0; i < json_array_size(documents); i++)
		if (names_pod(json_array_get(documents, i), orphan))
			return true;
	return json_array_size(documents) == 0;
}

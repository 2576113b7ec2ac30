/* file_write.c - purpose: the manifests directory as the API writes to it: an object into its file, or out of it. */
#include <errno.h>
#include <fcntl.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/source/file_i.h"
#include "kubelet-lite/source/manifest.h"
#include "kubelet-lite/store/kinds.h"

/* A name for a new file that no file has. */
static char *new_name(struct file_source *s, enum object_kind kind, const json_t *tree)
{
	const struct kind_info *info = kind_info(kind);
	const char *name = json_str_at(tree, "metadata.name", "");
	_cleanup_free_ char *base = info->namespaced ? xasprintf("%s_%s_%s", json_str_at(tree, "metadata.namespace", "default"),
							   info->singular, name)
						     : xasprintf("%s_%s", info->singular, name);
	char *path = NULL;

	for (unsigned i = 0; i < 100; i++) {
		free(path);
		_cleanup_free_ char *number = i ? xasprintf("-%u", i) : xstrdup("");
		char *file = xasprintf("%s%s.yaml", base, number);

		path = xasprintf("%s/%s", s->dir, file);
		if (access(path, F_OK) < 0) {
			free(path);
			return file;
		}
		free(file);
	}
	free(path);
	return xasprintf("%s-new.yaml", base);
}

/* The text of the file with the object in it (tree NULL: without). *ret NULL: the file is not needed any more. */
static int edited(const char *path, const char *key, const json_t *tree, char **ret_old, mode_t *ret_mode, char **ret,
	struct error *err)
{
	_cleanup_free_ char *old = NULL, *text = NULL;
	size_t len, left = 0;
	struct stat st;
	int r = file_read(AT_FDCWD, path, FILE_SIZE_MAX, &old, &len, err);

	if (r < 0)
		return r;
	r = manifest_replace(old, len, str_ends(path, ".json"), key, tree, &text, &left, err);
	if (r < 0)
		return r;
	*ret_mode = stat(path, &st) == 0 ? st.st_mode & 07777 : 0600;
	*ret_old = steal(old);
	if (left == 0)
		free(steal(text));
	*ret = steal(text);
	return 0;
}

static char *key_of_tree(enum object_kind kind, const json_t *tree)
{
	const struct kind_info *info = kind_info(kind);
	const char *ns = json_str_at(tree, "metadata.namespace", "");

	return xasprintf("%s/%s/%s", info->kind, !info->namespaced ? "" : *ns ? ns : "default",
		json_str_at(tree, "metadata.name", ""));
}

/* The store did not take it: the file must not say so either. */
static void take_back(const char *path, const char *old, mode_t mode)
{
	struct error err = ERROR_INIT;

	if (old && file_replace(AT_FDCWD, path, old, strlen(old), mode, &err) < 0)
		log_warning("cannot write a manifest back path=%s error=%s", path, err.text);
	if (!old && unlink(path) < 0)
		log_warning("cannot remove a manifest path=%s error=%s", path, strerror(errno));
}

int file_source_write(struct file_source *s, enum object_kind kind, const json_t *tree, struct error *err)
{
	_cleanup_free_ char *key = key_of_tree(kind, tree), *old = NULL, *text = NULL;
	_cleanup_json_ json_t *stripped = manifest_strip(kind, tree, objects_node_name(s->store));
	struct applied *a = map_get(&s->applied, key);
	bool exists = a && a->in_store && a->file;
	_cleanup_free_ char *name = exists ? xstrdup(a->file) : new_name(s, kind, tree);
	_cleanup_free_ char *path = xasprintf("%s/%s", s->dir, name);
	mode_t mode = 0600; /* there may be secrets in it */
	int r = exists ? edited(path, key, stripped, &old, &mode, &text, err) : 0;

	if (!exists)
		text = manifest_text(stripped, false);
	if (r == 0)
		r = file_replace(AT_FDCWD, path, text, strlen(text), mode, err);
	if (r < 0)
		return error_prefix(err, "write the manifest");
	_cleanup_json_ json_t *put = json_deep_copy(stripped);

	r = objects_put(s->store, kind, put, path, NULL, err);
	if (r < 0)
		take_back(path, old, mode);
	file_scan(s);
	return r;
}

int file_source_delete(struct file_source *s, const struct object *object, int64_t grace_seconds, struct error *err)
{
	_cleanup_free_ char *key = xasprintf("%s/%s/%s", kind_info(object->kind)->kind, object->ns, object->name);
	_cleanup_free_ char *ns = xstrdup(object->ns), *object_name = xstrdup(object->name);
	enum object_kind kind = object->kind;
	struct applied *a = map_get(&s->applied, key);
	_cleanup_free_ char *name = a && a->file ? xstrdup(a->file) : NULL, *old = NULL, *text = NULL;
	_cleanup_free_ char *path = name ? xasprintf("%s/%s", s->dir, name) : NULL;
	mode_t mode = 0600;
	int r = path ? edited(path, key, NULL, &old, &mode, &text, err) : -ENOENT;

	if (r < 0 && r != -ENOENT)
		return error_prefix(err, "edit the manifest");
	if (r == 0 && text)
		r = file_replace(AT_FDCWD, path, text, strlen(text), mode, err);
	else if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = error_sys(err, errno, "remove %s", path);
	if (r < 0 && r != -ENOENT)
		return r;
	if (a)
		file_applied_free(map_remove(&s->applied, key));
	if (name && !text && map_get(&s->files, name))
		file_free(map_remove(&s->files, name));
	r = objects_delete(s->store, kind, ns, object_name, grace_seconds, err);
	if (kind == KIND_SERVICE)
		file_forget_refusals(s);
	file_scan(s);
	return r;
}

/*
 * store.h - purpose: images and their unpacked layers on disk; pull, load, find, remove, and what containers hold.
 *
 *	<root>/daemon.lock            flock of the one daemon that uses this root
 *	<root>/store.lock             flock around every change of images.json, by daemon and administrator's commands alike
 *	<root>/images.json            every image: names, digests, size, configuration, chain ids; replaced atomically
 *	<root>/blobs/sha256/<hex>     manifests and image configurations (layers are kept unpacked only)
 *	<root>/layers/<chain id>/     fs/ (an overlay lower directory) and meta.json (bytes, inodes, what to verify)
 *	<root>/refs/<container id>    the chain ids which a container holds, one a line, top first
 *	<root>/locks/<chain id>       flock of whoever makes that layer
 *	<root>/staging/<name>/        half-done work of one pull or load; its owner holds a flock on it
 *
 * Rules that make it crash-safe, with any number of processes at work:
 * - A layer or blob gets its final name only after its content was synced; images.json only names what has its final name.
 * - A pull holds a shared flock on each layer directory and blob that it counts on until its image is recorded; collection
 *   takes the flock exclusively, without waiting, before it removes one.
 * - Whoever makes a layer holds an exclusive flock for that chain id: a second pull of it waits and finds it made.
 * - What is in staging/ and not locked is garbage, and so is a layer that no image and no container names.
 * - Readers notice a change by anybody, since images.json is then another inode than the one they hold open.
 *
 * All functions are thread-safe and may block (disk, network): never call them on the loop thread, except those that say
 * so. Errors carry the gRPC code that a CRI answer needs.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

struct image_store; /* opaque */

/* What an image says about the process that it wants. Data from outside: lengths are bounded, content is not checked. */
struct image_config {
	char *user; /* "" if none: "root", "1000:1000", ... */
	struct strv entrypoint;
	struct strv cmd;
	struct strv env; /* NAME=value */
	char *working_dir;
	char *stop_signal; /* "SIGTERM", "15", "RTMIN+3" or "" */
	struct strv volumes;
	struct strv exposed_ports; /* "80/tcp" */
};

/* Immutable once published, reference-counted. */
struct image {
	char *id; /* "sha256:<hex>", digest of the configuration */
	struct strv repo_tags;    /* "docker.io/library/busybox:1.36", sorted */
	struct strv repo_digests; /* "docker.io/library/busybox@sha256:<hex>", sorted */
	uint64_t size_bytes;      /* of the layers as transferred, plus manifest and configuration */
	bool pinned;
	uint64_t created_ns; /* when this store got it, realtime */
	char *manifest_digest; /* "sha256:<hex>", "" for images from a docker-archive */
	struct image_config config;
	struct strv chain_ids; /* hex, bottom layer first */
	unsigned refs;         /* private */
};
struct image *image_ref(struct image *image);
struct image *image_unref(struct image *image); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct image *, image_unref)
#define _cleanup_image_ _cleanup_(image_unref_p)

/* What a registry or an archive may cost us; 0 for the default. */
struct image_limits {
	uint64_t stall_timeout_ns; /* a pull without progress for so long fails; 60 s */
	uint64_t max_layer_bytes;  /* unpacked size of one layer; 64 GiB */
	uint64_t max_layer_ratio;  /* unpacked / packed beyond the first 256 MiB; 200 */
};

struct image_store_options {
	const char *root;                /* /var/lib/runtime-lite */
	const char *libexec_dir;         /* where `pull` is */
	const char *registry_config_dir; /* NULL: /etc/runtime-lite/certs.d, or /etc/containerd/certs.d if only that exists */
	const struct strv *insecure_registries; /* "host" or "host:port" that are spoken to by plain HTTP; may be NULL */
	const struct strv *pinned;       /* references whose images collection leaves alone; may be NULL */
	struct image_limits limits;
	/* Shared: for commands beside a daemon. No daemon.lock, nothing is cleaned up, layers cannot be acquired. */
	bool shared;
};

/* Makes the directories (0711 root, 0700 below), takes the lock (PRECONDITION "... is in use by another runtime-lite" if it
 * is held), removes half-made things and what nobody names, reads images.json. Copies the options. */
int image_store_open(const struct image_store_options *options, struct image_store **ret, struct error *err) MUST_USE;
struct image_store *image_store_close(struct image_store *store);

/* Finds by reference as users write it ("busybox", "host:5000/a/b:tag", "name@sha256:..."), or by id ("sha256:<hex>", the
 * bare hex, or a unique prefix of at least 4 hex digits). *ret is a new reference. NOT_FOUND; INVALID for a text that can be
 * neither. Cheap: one stat() when nothing changed. */
int image_store_find(struct image_store *store, const char *reference, struct image **ret, struct error *err) MUST_USE;
/* All images sorted by id, or the one that `reference` names (none: empty; NULL or "": all). *ret is an array of
 * references, to be freed with image_list_free(). */
int image_store_list(struct image_store *store, const char *reference, struct image ***ret, size_t *ret_n,
	struct error *err) MUST_USE;
void image_list_free(struct image **list, size_t n);
/* Removes the image that `reference` names, with ALL its names; unknown is fine (0). Its layers go too unless another
 * image, a container or a running pull holds them. */
int image_store_remove(struct image_store *store, const char *reference, struct error *err) MUST_USE;
/* Removes images that no container holds and that are not pinned: with `all` every such one, else only those without a
 * tag. Then collects. `in_use` (may be NULL) can hold further image ids to leave alone. *ret_removed gets ids; NULL is fine. */
int image_store_prune(struct image_store *store, bool all, const struct strv *in_use, struct strv *ret_removed,
	struct error *err) MUST_USE;
/* Removes layers and blobs that nobody names. The others call it where needed. */
int image_store_collect(struct image_store *store, struct error *err) MUST_USE;
/* Bytes on disk and inodes of all layers; a running sum, no walk. May be called on the loop thread. */
void image_store_usage(struct image_store *store, uint64_t *ret_bytes, uint64_t *ret_inodes);
const char *image_store_root(const struct image_store *store);

/* Credentials as CRI gives them; fields may be NULL. They reach the pull program through a pipe, never by argv. */
struct image_auth {
	const char *username, *password, *auth, *server_address, *identity_token, *registry_token;
};

struct image_progress {
	const char *what; /* "layer sha256:...", "manifest", ... */
	uint64_t done_bytes, total_bytes; /* of all layers so far; total 0: unknown yet */
	unsigned layers_done, layers;
};

struct image_pull_options {
	const struct image_auth *auth; /* may be NULL */
	uint64_t deadline_ns;          /* monotonic; 0: none. DEADLINE when it passes */
	int cancel_fd;                 /* becomes readable or hangs up: CANCELLED. -1: none */
	void (*progress)(void *data, const struct image_progress *progress); /* may be NULL; on the calling thread */
	void *data;
	const char *platform; /* "os/arch[/variant]"; NULL: this node's */
};
#define IMAGE_PULL_OPTIONS_INIT ((struct image_pull_options){ .cancel_fd = -1 })

/* Pulls; blocks until the image is recorded (the very next image_store_find() sees it) or nothing is left of the attempt.
 * Registry troubles that may pass begin with "RegistryUnavailable: ". *ret_id is "sha256:<hex>", owned by the caller. */
int image_pull(struct image_store *store, const char *reference, const struct image_pull_options *options, char **ret_id,
	struct error *err) MUST_USE;
/* Loads every image of an OCI layout (directory, or tar) or a docker-archive (tar, may be gzip or zstd). `path` "-" reads
 * standard input. `name` (may be NULL) names an image that has no name of its own. *ret_loaded gets one
 * "<name or id>" for each. */
int image_load(struct image_store *store, const char *path, const char *name, const struct image_pull_options *options,
	struct strv *ret_loaded, struct error *err) MUST_USE;

/* Lets a container hold an image's layers: collection leaves them until the release, over restarts of the daemon and
 * removal of the image. *ret_lower_dirs (may be NULL) gets absolute paths, top layer first (the order of overlay's
 * lowerdir). Idempotent for the same container and image. PRECONDITION when a layer is missing or there are more than 500. */
int image_layers_acquire(struct image_store *store, const char *image_id, const char *container_id,
	struct strv *ret_lower_dirs, struct error *err) MUST_USE;
/* What the container holds already, without the image (it may be gone): for recovery. NOT_FOUND. */
int image_layers_held(struct image_store *store, const char *container_id, struct strv *ret_lower_dirs,
	struct error *err) MUST_USE;
/* Unknown container: 0. Collects what became unused. */
int image_layers_release(struct image_store *store, const char *container_id, struct error *err) MUST_USE;
/* Call once after recovery with the containers that exist: all other holds are dropped (a reboot leaves them behind). */
int image_layers_retain_only(struct image_store *store, const struct strv *container_ids, struct error *err) MUST_USE;

/*
 * credentials.h - purpose: the user and password that a pull secret has for an image's registry. Pure.
 */
#pragma once
#include "kubelet-lite/core/keyed.h"

struct image_credential {
	char *username;
	char *password;
	char *registry_token;
};
void credential_done(struct image_credential *credential);

/* `secret`: .dockerconfigjson or .dockercfg. Of several matching entries the most specific one. */
bool credential_find(const struct keyed *secret, const char *image, struct image_credential *ret);

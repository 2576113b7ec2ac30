/*
 * recover.h - purpose: at start, find again what a former daemon has left: running pods, and what was half done.
 */
#pragma once
#include "runtime-lite/model/teardown.h"

/* Reads all state files and matches them with monitors, exit files, writable layers, image holds and addresses. What was
 * being created is undone, what has ended is known to have ended, what runs goes on. Afterwards every sandbox in READY has
 * a connected monitor. Fails only if a state file was written by a newer version, or directories cannot be read. */
int recover(const struct teardown *t, struct error *err) MUST_USE;

/* A start that was under way when the former daemon died may only now have got its process. Reads the pid files of all
 * containers that were never started, as far as we know; to be called a moment after recover(). */
void recover_late_starts(struct store *store);

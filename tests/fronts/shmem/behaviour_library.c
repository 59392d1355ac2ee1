/* SPDX-License-Identifier: BSD-3-Clause */

/* A library that the program links: its static variables are symmetric too. */

#include <shmem.h>

long library_word;
static long padding[100] = {1};

long* library_address(void) { return padding[0] == 1 ? &library_word : 0; }

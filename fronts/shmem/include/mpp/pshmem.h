/* SPDX-License-Identifier: BSD-3-Clause */
/* The place that older programs include it from. */
#include <pshmem.h>

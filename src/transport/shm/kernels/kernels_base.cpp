// SPDX-License-Identifier: BSD-3-Clause
// For every processor of this architecture.
#define MOB_KERNELS kBaseKernels
#define MOB_KERNELS_NAME "base"
#include "transport/shm/kernels/kernels_body.h"

// SPDX-License-Identifier: BSD-3-Clause
// Compiled with -mavx2.
#define MOB_KERNELS kAvx2Kernels
#define MOB_KERNELS_NAME "avx2"
#include "transport/shm/kernels/kernels_body.h"

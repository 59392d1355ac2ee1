// SPDX-License-Identifier: BSD-3-Clause
// Compiled with -mavx512f and the extensions that all processors with it have, except coprocessors.
#define MOB_KERNELS kAvx512Kernels
#define MOB_KERNELS_NAME "avx512"
#include "transport/shm/kernels/kernels_body.h"

// SPDX-License-Identifier: BSD-3-Clause

// The functions that shmem.h defines inline, as symbols with their twins.

#define SHMEM_LIBRARY_
#define SHMEM_NO_INLINE
#define SHMEM_EMIT_SYMBOLS_
#include <pshmem.h>
// After the declarations, which the definitions repeat.
extern "C" {
#include <shmem/inline.h>
}

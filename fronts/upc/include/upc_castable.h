/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_CASTABLE_H
#define UPC_CASTABLE_H

/**
 * @file
 * UPC 1.3 optional library, §7.2: private pointers to the memory of other threads. Here all memory
 * of all threads of the host. Local, does not block. */

#include <mobius_upc/faces.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return a private pointer to the object; null if `ptr` is null or the object cannot be
 * addressed. */
MOB_UPC_API void* upc_cast(MOB_UPC_SHARED_(const void) ptr);

/** Which memory of a thread can be cast: values combined by `|`. */
typedef struct upc_thread_castability {
  int guaranteedCastable; /**< always */
  int probablyCastable;   /**< perhaps */
} upc_thread_info_t;
#define UPC_CASTABLE_ALL_ALLOC 0x1
#define UPC_CASTABLE_GLOBAL_ALLOC 0x2
#define UPC_CASTABLE_ALLOC 0x4
#define UPC_CASTABLE_STATIC 0x8
#define UPC_CASTABLE_ALL 0xf

/** @return what the caller can cast of the memory of a thread. */
MOB_UPC_API upc_thread_info_t upc_thread_info(size_t threadId);

#ifdef __cplusplus
}
#endif
#endif

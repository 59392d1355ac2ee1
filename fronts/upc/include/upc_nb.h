/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_NB_H
#define UPC_NB_H

/**
 * @file
 * UPC 1.3 optional library, §7.4: copies that go on while the program does. The operands must stay
 * as they are, and results must not be used, until the copy is synchronised. With a handle: by
 * upc_sync() or a successful upc_sync_attempt(). Without (nbi): by upc_synci(), for all at once.
 *
 * A copy between the caller's host and another goes on meanwhile. The call that starts it does the
 * whole copy if both operands lie on the caller's host, or both on others, and upc_memset_nb() and
 * upc_memset_nbi() always do. */

#include <mobius_upc/faces.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A copy that was started. */
typedef uint64_t upc_handle_t;
/** The handle of a copy that is complete. */
#define UPC_COMPLETE_HANDLE ((upc_handle_t)0)

/** Starts upc_memcpy(). @return for upc_sync() */
MOB_UPC_API upc_handle_t upc_memcpy_nb(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                       size_t n);
/** Starts upc_memget(). @return for upc_sync() */
MOB_UPC_API upc_handle_t upc_memget_nb(void* dst, MOB_UPC_SHARED_(const void) src, size_t n);
/** Starts upc_memput(). @return for upc_sync() */
MOB_UPC_API upc_handle_t upc_memput_nb(MOB_UPC_SHARED_(void) dst, const void* src, size_t n);
/** Starts upc_memset(). @return for upc_sync() */
MOB_UPC_API upc_handle_t upc_memset_nb(MOB_UPC_SHARED_(void) dst, int c, size_t n);
/** Waits for a copy. The handle is used up. */
MOB_UPC_API void upc_sync(upc_handle_t handle);
/** @return 1 if the copy is complete, and its handle used up; else 0. Does not wait. */
MOB_UPC_API int upc_sync_attempt(upc_handle_t handle);

/** Starts upc_memcpy() without a handle. */
MOB_UPC_API void upc_memcpy_nbi(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                size_t n);
/** Starts upc_memget() without a handle. */
MOB_UPC_API void upc_memget_nbi(void* dst, MOB_UPC_SHARED_(const void) src, size_t n);
/** Starts upc_memput() without a handle. */
MOB_UPC_API void upc_memput_nbi(MOB_UPC_SHARED_(void) dst, const void* src, size_t n);
/** Starts upc_memset() without a handle. */
MOB_UPC_API void upc_memset_nbi(MOB_UPC_SHARED_(void) dst, int c, size_t n);
/** Waits for all copies of the caller without a handle. */
MOB_UPC_API void upc_synci(void);
/**
 * Completes all copies of the caller without a handle. In this library it waits as upc_synci()
 * does.
 *
 * @return 1
 */
MOB_UPC_API int upc_synci_attempt(void);

#ifdef __cplusplus
}
#endif
#endif

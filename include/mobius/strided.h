/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_STRIDED_H
#define MOBIUS_STRIDED_H

/**
 * @file
 * Put, get and accumulate of data that is not contiguous. These are named cases of mob_transfer()
 * that block until local completion; transfer.h has the other cases.
 *
 * A box of up to MOB_MAX_DIMENSIONS dimensions is a run of bytes that repeats: run (i0 … ik) is at
 * base + i0 × stride[0] + … + ik × stride[k], with i < counts. Example: 512 bytes of each of 128
 * rows, in rows of 4096 bytes, are runs of 512 bytes that repeat in one dimension with count 128
 * and stride 4096.
 *
 * Compare ARMCI_PutS, ARMCI_GetS, ARMCI_AccS and ARMCI_PutV, ARMCI_GetV, ARMCI_AccV. */

#include <mobius/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Puts a box.
 *
 * @param rank            the target
 * @param remote          first byte of the first run, an address in the target
 * @param remote_strides  bytes from run to run at the target, one per dimension; runs must not
 *                        overlap
 * @param local           first byte of the first run at the caller, which may change it when the
 *                        call returns
 * @param local_strides   bytes from run to run at the caller, one per dimension
 * @param run_bytes       bytes of a run
 * @param counts          repetitions, one per dimension
 * @param dimensions      0 … MOB_MAX_DIMENSIONS - 1; with 0 the arrays may be null
 * @return as mob_transfer()
 *
 * Blocks until local completion. Thread safety: any.
 */
MOB_API mob_status_t mob_put_strided(mob_rank_t rank, void* remote, const ptrdiff_t* remote_strides,
                                     const void* local, const ptrdiff_t* local_strides,
                                     size_t run_bytes, const size_t* counts, int dimensions);

/**
 * Gets a box; as mob_put_strided(). The runs at the caller are written, so they must not overlap.
 *
 * @return as mob_transfer()
 *
 * Blocks until the data has arrived. Thread safety: any.
 */
MOB_API mob_status_t mob_get_strided(mob_rank_t rank, const void* remote,
                                     const ptrdiff_t* remote_strides, void* local,
                                     const ptrdiff_t* local_strides, size_t run_bytes,
                                     const size_t* counts, int dimensions);

/**
 * Accumulates a box: remote := remote op (scale × local); as mob_put_strided().
 *
 * @param type   type of the elements; a run holds whole elements, aligned at the target
 * @param op     an operation that is defined on that type
 * @param scale  one element, with MOB_SUM only; or null for 1
 * @return as mob_transfer()
 *
 * Blocks until local completion. Thread safety: any.
 */
MOB_API mob_status_t mob_accumulate_strided(mob_rank_t rank, void* remote,
                                            const ptrdiff_t* remote_strides, const void* local,
                                            const ptrdiff_t* local_strides, size_t run_bytes,
                                            const size_t* counts, int dimensions, mob_type_t type,
                                            mob_op_t op, const void* scale);

/**
 * Puts pieces of equal length, the i-th from locals[i] to remotes[i].
 *
 * @param rank     the target
 * @param remotes  `count` addresses in the target; pieces must not overlap there
 * @param locals   `count` addresses of the caller, which may change the pieces when the call
 *                 returns
 * @param count    number of pieces; 0 does nothing
 * @param bytes    bytes of each piece
 * @return as mob_transfer()
 *
 * Blocks until local completion. Thread safety: any.
 */
MOB_API mob_status_t mob_put_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                                    size_t count, size_t bytes);

/**
 * Gets pieces, the i-th from remotes[i] to locals[i]; as mob_put_pieces(). The pieces at the caller
 * are written, so they must not overlap.
 *
 * @return as mob_transfer()
 *
 * Blocks until the data has arrived. Thread safety: any.
 */
MOB_API mob_status_t mob_get_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                                    size_t count, size_t bytes);

/**
 * Accumulates pieces as mob_put_pieces(), with type, operation and scale as
 * mob_accumulate_strided().
 *
 * @return as mob_transfer()
 *
 * Blocks until local completion. Thread safety: any.
 */
MOB_API mob_status_t mob_accumulate_pieces(mob_rank_t rank, void* const* remotes,
                                           void* const* locals, size_t count, size_t bytes,
                                           mob_type_t type, mob_op_t op, const void* scale);

#ifdef __cplusplus
}
#endif
#endif

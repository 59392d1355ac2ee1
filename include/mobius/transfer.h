/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TRANSFER_H
#define MOBIUS_TRANSFER_H

/**
 * @file
 * One description for every transfer: what moves, in which shape, combined how, and who is told.
 * The calls of rma.h and atomic.h are its common cases by name.
 *
 * Fill a mob_transfer_t that starts as zeros (`mob_transfer_t t = {0};` or designated initialisers)
 * and pass it to one of
 *
 * - mob_transfer():     blocks until local completion;
 * - mob_transfer_nb():  returns a handle, which mob_wait() and mob_test() complete locally;
 * - mob_transfer_nbi(): completes locally with the next mob_flush_local(), mob_flush() or
 *                       mob_flush_all() of the calling thread's context.
 *
 * The description and everything it points to except the data itself may be reused when the call
 * returns. Local completion: the local buffer of a put or accumulate may be reused, that of a get
 * or fetch holds the data. Remote completion: as for every operation, mob_flush() (rma.h).
 *
 * Compare LAPI_Xfer, ARMCI_PutS/PutV/AccS, MPI_Put/MPI_Accumulate with derived datatypes.
 */

#include <mobius/counter.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a transfer does. */
typedef enum mob_kind {
  MOB_PUT,             /**< remote := local */
  MOB_GET,             /**< local := remote */
  MOB_ACCUMULATE,      /**< remote := remote op (scale × local), element-wise atomic */
  MOB_FETCH_ACCUMULATE /**< as MOB_ACCUMULATE, and `fetched` := what was in remote before */
} mob_kind_t;

/** How its bytes lie. */
typedef enum mob_shape {
  MOB_CONTIGUOUS, /**< `bytes` bytes at `remote` and `local` */
  MOB_STRIDED,    /**< a box of up to MOB_MAX_DIMENSIONS dimensions on either side */
  MOB_PIECES,     /**< `count` pieces of `bytes` bytes each, at listed addresses */
  MOB_SPANS       /**< two lists of address and length; both name equally many bytes in all */
} mob_shape_t;

enum { MOB_MAX_DIMENSIONS = 8 };

/** Some bytes. */
typedef struct mob_span {
  void* address;
  size_t bytes;
} mob_span_t;

/** How a signal word at the target changes (put-with-signal). */
typedef enum mob_signal_op {
  MOB_SIGNAL_SET, /**< word := value */
  MOB_SIGNAL_ADD  /**< word := word + value, atomic */
} mob_signal_op_t;

/** A transfer. Members that its shape and kind do not name are ignored. */
typedef struct mob_transfer_args {
  mob_kind_t kind;
  mob_shape_t shape;
  mob_rank_t rank; /**< the target */

  /* Contiguous and strided. */
  void* remote; /**< first byte, an address in the target (read only, for a get) */
  void* local;  /**< first byte, any memory of the caller (read only, unless for a get) */
  size_t bytes; /**< contiguous: all; strided: of one innermost run; pieces: of one piece */

  /* Strided: run (i0 … ik) starts at base + i0 * stride[0] + … + ik * stride[k], with i < counts.
   * Strides are in bytes, may be negative, and may be 0 on the side that is read. */
  int dimensions; /**< 0 … MOB_MAX_DIMENSIONS - 1 repetitions of the run: one less than the box has
                   */
  const size_t* counts;
  const ptrdiff_t* remote_strides;
  const ptrdiff_t* local_strides;

  /* Pieces: the i-th goes between remotes[i] and locals[i]. */
  size_t count;
  void* const* remotes;
  void* const* locals;

  /* Spans: the bytes of both lists in order. */
  const mob_span_t* remote_spans;
  size_t remote_span_count;
  const mob_span_t* local_spans;
  size_t local_span_count;

  /* Accumulate. Every run, piece and span holds whole elements, aligned at the target. */
  mob_type_t type;
  mob_op_t op;
  const void* scale; /**< one element, or null for 1; with MOB_SUM only */
  void* fetched;     /**< fetching: the old elements in order, without gaps; the caller's */

  /* Who is told. Each may be null. */
  mob_counter_t origin_counter;     /**< the caller's: + 1 at local completion */
  mob_counter_t target_counter;     /**< the target's: + 1 when the data is there (put, accumulate)
                                         or has left (get) */
  mob_counter_t completion_counter; /**< the caller's: + 1 at remote completion */
  uint64_t* signal;                 /**< an aligned word of the target, changed after the data is
                                         there (or has left), for mob_wait_until() */
  uint64_t signal_value;
  mob_signal_op_t signal_op;
  uint64_t* origin_word;     /**< an aligned word of the caller, any memory of it: + 1 (atomic) at
                                  local completion, as a counter that need not be made */
  uint64_t* completion_word; /**< the same, at remote completion */
} mob_transfer_t;

/** A transfer that was started. MOB_HANDLE_DONE is one that needs no completion. */
typedef uint64_t mob_handle_t;
#define MOB_HANDLE_DONE UINT64_C(0)

/**
 * Runs a transfer; blocks until its local completion.
 *
 * @param transfer  the description; read during the call only
 * @return MOB_OK; MOB_ERR_RANK;
 *         MOB_ERR_STATE     outside init … finalize, or in a handler, if it would have to wait;
 *         MOB_ERR_ARGUMENT  null or unaligned addresses, unknown kind, shape, type or operation, an
 *                           operation that the type lacks, dimensions out of bounds, written
 *                           strides that overlap, lists of different length;
 *         MOB_ERR_RANGE     bytes that are not the target's memory, sizes that overflow;
 *         MOB_ERR_HANDLE    a counter that is not live;
 *         MOB_ERR_PEER      the target died;
 *         MOB_ERR_MEMORY    no memory to keep what is under way;
 *         MOB_ERR_SYSTEM    the kernel does not copy, or the library's thread cannot be started.
 *         What the target finds wrong with a put or accumulate that it carries out (exposed memory,
 *         another host) the next flush returns.
 *         After an error in the description nothing was transferred and nobody is told.
 *
 * Thread safety: any.
 */
MOB_API mob_status_t mob_transfer(const mob_transfer_t* transfer);

/**
 * Starts a transfer.
 *
 * @param transfer  the description; read during the call only
 * @param handle    out: to be completed with mob_wait(), mob_test() or their kin
 * @return as mob_transfer(); MOB_ERR_ARGUMENT also if `handle` is null
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_transfer_nb(const mob_transfer_t* transfer, mob_handle_t* handle);

/**
 * Starts a transfer that belongs to the calling thread's context (context.h).
 *
 * @param transfer  the description; read during the call only
 * @return as mob_transfer(). An error found later is returned by the flush.
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_transfer_nbi(const mob_transfer_t* transfer);

/**
 * Waits for local completion of one transfer.
 *
 * @param handle  what mob_transfer_nb() gave; becomes MOB_HANDLE_DONE, after an error of the
 *                transfer, too. MOB_HANDLE_DONE returns at once.
 * @return MOB_OK, MOB_ERR_STATE (also in a handler, if it would have to wait; the handle is as
 *         before), MOB_ERR_ARGUMENT (null), MOB_ERR_HANDLE (not a started transfer, or completed
 *         before; as before), MOB_ERR_PEER (the target died), or another error of the transfer
 *
 * Makes progress while it waits. Thread safety: any; one thread per handle.
 */
MOB_API mob_status_t mob_wait(mob_handle_t* handle);

/**
 * Asks for local completion of one transfer; does not block.
 *
 * @param handle  as mob_wait(); becomes MOB_HANDLE_DONE if it is complete
 * @param done    out: 1 if it is, else 0
 * @return as mob_wait()
 */
MOB_API mob_status_t mob_test(mob_handle_t* handle, int* done);

/** As mob_wait(), for `count` handles; the first error. After an error the remaining handles were
 *  waited for too, but none if there are more than memory can hold (MOB_ERR_RANGE). */
MOB_API mob_status_t mob_wait_all(mob_handle_t* handles, size_t count);

/**
 * Waits until one of several transfers is complete.
 *
 * @param handles  started transfers; entries that are MOB_HANDLE_DONE are passed over
 * @param count    how many
 * @param index    out: which one, also after an error of its own; `count` if all were
 *                 MOB_HANDLE_DONE
 * @return as mob_wait(); MOB_ERR_PEER also, with all handles as before, if any rank of the job died
 *         and nothing has come for about 100 ms: who knows that it was not the target waits again
 */
MOB_API mob_status_t mob_wait_any(mob_handle_t* handles, size_t count, size_t* index);

/**
 * Waits until at least one of several transfers is complete, and completes all that are.
 *
 * @param handles    as mob_wait_any()
 * @param count      how many
 * @param indices    out: which, in ascending order; room for `count`
 * @param completed  out: how many; 0 if all were MOB_HANDLE_DONE
 * @return as mob_wait_any()
 */
MOB_API mob_status_t mob_wait_some(mob_handle_t* handles, size_t count, size_t* indices,
                                   size_t* completed);

#ifdef __cplusplus
}
#endif
#endif

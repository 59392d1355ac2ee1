/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TRANSFER_H
#define MOBIUS_TRANSFER_H

/**
 * @file
 * One description for every transfer: the bytes, their shape, the operation that combines them, and
 * the counters and words to change. The calls of rma.h and atomic.h are names for common cases.
 *
 * Fill a mob_transfer_t that starts as zeros (`mob_transfer_t t = {0};` or designated initialisers)
 * and pass it to one of
 *
 * - mob_transfer():     blocks until local completion;
 * - mob_transfer_nb():  returns a handle; mob_wait() and mob_test() complete it locally;
 * - mob_transfer_nbi(): completes locally with the next mob_flush_local(), mob_flush() or
 *   mob_flush_all() of the calling thread's context.
 *
 * When the call returns, the caller may reuse the description and everything it points to, except
 * the data itself. Local completion: the caller may reuse the local buffer of a put or accumulate,
 * and the buffer of a get or fetch holds the data. Remote completion: mob_flush(), as for every
 * operation (rma.h).
 *
 * Compare LAPI_Xfer, ARMCI_PutS/PutV/AccS, MPI_Put/MPI_Accumulate with derived datatypes. */

#include <mobius/counter.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of a transfer. */
typedef enum mob_kind {
  MOB_PUT,             /**< remote := local */
  MOB_GET,             /**< local := remote */
  MOB_ACCUMULATE,      /**< remote := remote op (scale × local), element-wise atomic */
  MOB_FETCH_ACCUMULATE /**< as MOB_ACCUMULATE, and `fetched` := the former contents of remote */
} mob_kind_t;

/** The layout of a transfer's bytes. */
typedef enum mob_shape {
  MOB_CONTIGUOUS, /**< `bytes` bytes at `remote` and `local` */
  MOB_STRIDED,    /**< a box of up to MOB_MAX_DIMENSIONS dimensions on either side */
  MOB_PIECES,     /**< `count` pieces of `bytes` bytes each, at listed addresses */
  MOB_SPANS       /**< two lists of address and length, with the same total of bytes */
} mob_shape_t;

enum { MOB_MAX_DIMENSIONS = 8 /**< of a strided transfer, its run included */ };

/** A contiguous range of bytes. */
typedef struct mob_span {
  void* address; /**< the first of them, where their owner has it */
  size_t bytes;  /**< how many */
} mob_span_t;

/** The change of a signal word at the target (put-with-signal). */
typedef enum mob_signal_op {
  MOB_SIGNAL_SET, /**< word := value */
  MOB_SIGNAL_ADD  /**< word := word + value, atomic */
} mob_signal_op_t;

/** The description of a transfer. Members that do not belong to its shape and kind are ignored. */
typedef struct mob_transfer_args {
  mob_kind_t kind;   /**< what it does */
  mob_shape_t shape; /**< how its bytes lie, on both sides */
  mob_rank_t rank;   /**< the target */

  /* Contiguous and strided. */
  void* remote; /**< first byte, an address in the target (only read, for a get) */
  void* local;  /**< first byte, any memory of the caller (only read, except by a get) */
  size_t bytes; /**< contiguous: all bytes; strided: one innermost run; pieces: one piece */

  /* Strided: run (i0 … ik) starts at base + i0 * stride[0] + … + ik * stride[k], with i < counts.
   * Strides are in bytes, may be negative, and may be 0 on the side that is read. */
  /** 0 … MOB_MAX_DIMENSIONS - 1 repetitions of the run: the dimensions of the box - 1 */
  int dimensions;
  const size_t* counts; /**< `dimensions` of them: repetitions in each dimension */
  const ptrdiff_t*
      remote_strides; /**< `dimensions` of them: bytes from one repetition to the next */
  const ptrdiff_t* local_strides; /**< the same, at the caller */

  /* Pieces: the i-th piece moves between remotes[i] and locals[i]. */
  size_t count;         /**< how many pieces, each of `bytes` bytes */
  void* const* remotes; /**< their addresses in the target */
  void* const* locals;  /**< their addresses at the caller */

  /* Spans: the bytes of both lists, in order. */
  const mob_span_t* remote_spans; /**< in the target */
  size_t remote_span_count;       /**< length of that list */
  const mob_span_t* local_spans;  /**< at the caller; as many bytes as in the target in all */
  size_t local_span_count;        /**< length of that list */

  /* Accumulate. Every run, piece and span holds whole elements, aligned at the target. */
  mob_type_t type;   /**< of the elements */
  mob_op_t op;       /**< how they are combined */
  const void* scale; /**< one element, or null for 1; with MOB_SUM only */
  /** Fetching: receives the old elements in order, without gaps; the caller owns it. */
  void* fetched;

  /* Counters and words that the transfer changes. Each may be null. */
  mob_counter_t origin_counter; /**< the caller's: + 1 at local completion */
  /** The target's: + 1 when the data has arrived (put, accumulate) or has been read (get). */
  mob_counter_t target_counter;
  mob_counter_t completion_counter; /**< the caller's: + 1 at remote completion */
  /**
   * An aligned word of the target, changed after the data has arrived (or has been read), for
   * mob_wait_until().
   */
  uint64_t* signal;
  uint64_t signal_value;     /**< what `signal` becomes, or what is added to it */
  mob_signal_op_t signal_op; /**< which of the two */
  /**
   * An aligned word of the caller, in any memory: + 1 (atomic) at local completion; a counter that
   * need not be created.
   */
  uint64_t* origin_word;
  uint64_t* completion_word; /**< the same, + 1 at remote completion */
} mob_transfer_t;

/** A transfer that was started. MOB_HANDLE_DONE stands for one that is complete. */
typedef uint64_t mob_handle_t;
/** The handle of a transfer that is complete. */
#define MOB_HANDLE_DONE UINT64_C(0)

/**
 * Runs a transfer.
 *
 * @param transfer  the description; read during the call only
 * @return MOB_OK; MOB_ERR_RANK;
 *         MOB_ERR_STATE     outside init … finalize, or in a handler where it would have to wait;
 *         MOB_ERR_ARGUMENT  null or unaligned addresses; unknown kind, shape, type or operation; an
 *                           operation that the type lacks; dimensions out of bounds; written
 *                           strides that overlap; lists of different length;
 *         MOB_ERR_RANGE     bytes outside the target's memory, or sizes that overflow;
 *         MOB_ERR_HANDLE    a counter that is not live;
 *         MOB_ERR_PEER      the target died;
 *         MOB_ERR_MEMORY    no memory for the record of the transfer;
 *         MOB_ERR_SYSTEM    the kernel refuses to copy, or the library's thread cannot be started.
 *         If the target carries out a put or accumulate itself (exposed memory, another host), the
 *         next flush returns the errors that only the target can detect. After an error in the
 *         description nothing was transferred, and no counter or word changes.
 *
 * Blocks until local completion, and makes progress if it waits. Thread safety: any.
 */
MOB_API mob_status_t mob_transfer(const mob_transfer_t* transfer);

/**
 * Starts a transfer. Its buffers belong to the library until local completion.
 *
 * @param transfer  the description; read during the call only
 * @param handle    out: complete it with mob_wait(), mob_test() or a related call
 * @return as mob_transfer(); MOB_ERR_ARGUMENT also if `handle` is null
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_transfer_nb(const mob_transfer_t* transfer, mob_handle_t* handle);

/**
 * Starts a transfer that belongs to the calling thread's context (context.h). A flush of that
 * context completes it.
 *
 * @param transfer  the description; read during the call only
 * @return as mob_transfer(). The flush returns an error that is found later.
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_transfer_nbi(const mob_transfer_t* transfer);

/**
 * Waits for local completion of one transfer.
 *
 * @param handle  from mob_transfer_nb(); becomes MOB_HANDLE_DONE, also after an error of the
 *                transfer. MOB_HANDLE_DONE returns at once.
 * @return MOB_OK, MOB_ERR_STATE (also in a handler, if it would have to wait; the handle is as
 *         before), MOB_ERR_ARGUMENT (null), MOB_ERR_HANDLE (not a started transfer, or completed
 *         before; the handle is as before), MOB_ERR_PEER (the target died), or another error of the
 *         transfer
 *
 * Blocks; makes progress while it waits. Thread safety: any, but one thread per handle.
 */
MOB_API mob_status_t mob_wait(mob_handle_t* handle);

/**
 * Tests for local completion of one transfer.
 *
 * @param handle  as mob_wait(); becomes MOB_HANDLE_DONE if the transfer is complete
 * @param done    out: 1 if it is complete, else 0
 * @return as mob_wait()
 *
 * Does not block; makes progress. Thread safety: any, but one thread per handle.
 */
MOB_API mob_status_t mob_test(mob_handle_t* handle, int* done);

/**
 * Waits for `count` handles, as mob_wait().
 *
 * @param handles  `count` of them; each becomes MOB_HANDLE_DONE
 * @param count    how many; 0 does nothing
 *
 * @return the first error. After an error the remaining handles were waited for too; but none was
 *         if there are more handles than memory can hold (MOB_ERR_RANGE).
 *
 * Blocks, makes progress. Thread safety: any, but one thread per handle.
 */
MOB_API mob_status_t mob_wait_all(mob_handle_t* handles, size_t count);

/**
 * Waits until one of several transfers is complete.
 *
 * @param handles  started transfers; entries that are MOB_HANDLE_DONE are skipped
 * @param count    number of entries
 * @param index    out: the index of the completed one, also if it completed with an error; `count`
 *                 if all entries were MOB_HANDLE_DONE
 * @return as mob_wait(). MOB_ERR_PEER also, with all handles as before, if any rank of the job died
 *         and no transfer has completed for about 100 ms. A caller that knows that the dead rank is
 *         not a target waits again.
 *
 * Blocks, makes progress. Thread safety: any, but one thread per handle.
 */
MOB_API mob_status_t mob_wait_any(mob_handle_t* handles, size_t count, size_t* index);

/**
 * Waits until at least one of several transfers is complete, and completes all that are.
 *
 * @param handles    as mob_wait_any()
 * @param count      number of entries
 * @param indices    out: indices of the completed ones, in ascending order; room for `count`
 * @param completed  out: number of completed ones; 0 if all entries were MOB_HANDLE_DONE
 * @return as mob_wait_any()
 *
 * Blocks, makes progress. Thread safety: any, but one thread per handle.
 */
MOB_API mob_status_t mob_wait_some(mob_handle_t* handles, size_t count, size_t* indices,
                                   size_t* completed);

#ifdef __cplusplus
}
#endif
#endif

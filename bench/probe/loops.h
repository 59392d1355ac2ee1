/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_LOOPS_H
#define PROBE_LOOPS_H

/**
 * @file
 * The loops of the experiments, for all libraries. An adapter names its inlined steps (adapter.h)
 * and gets a function of type probe_loop_t. A step is
 *
 *     static PROBE_INLINE int step(probe_rank_t* rank, probe_transfer_t* transfer);
 *
 * and returns 0 or an error, which ends the loop.
 */

#include "adapter.h"

#define PROBE_INLINE inline __attribute__((always_inline))

/** Ranks take turns: one moves the data and signals the other, which waits for it. */
#define PROBE_DEFINE_PINGPONG(function, turn, await)                                            \
  static int function(probe_rank_t* rank, probe_transfer_t* shared, int first, uint64_t legs) { \
    probe_transfer_t transfer = *shared; /* a copy that the compiler can keep in registers */   \
    int my_turn = rank->rank == first;                                                          \
    int error = 0;                                                                              \
    for (; legs > 0 && error == 0; legs--, my_turn = !my_turn)                                  \
      error = my_turn ? turn(rank, &transfer) : await(rank, &transfer);                         \
    *shared = transfer;                                                                         \
    return error;                                                                               \
  }

/** One rank operates; the other waits in probe_settle() and takes no part. */
#define PROBE_DEFINE_COMPLETION(function, operate)                                              \
  static int function(probe_rank_t* rank, probe_transfer_t* shared, int first, uint64_t legs) { \
    if (rank->rank != first) return 0;                                                          \
    probe_transfer_t transfer = *shared;                                                        \
    int error = 0;                                                                              \
    for (; legs > 0 && error == 0; legs--) error = operate(rank, &transfer);                    \
    *shared = transfer;                                                                         \
    return error;                                                                               \
  }

#endif

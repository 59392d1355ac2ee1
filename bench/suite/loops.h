/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_LOOPS_H
#define SUITE_LOOPS_H

/**
 * @file
 * Loops of a transfer and a synchronisation, for all libraries. A library names its inlined steps
 * and gets a function for suite_loop_block_t, in which nothing is called through a pointer. A step
 * is
 *
 *     static SUITE_INLINE int step(suite_spot_t* spot);
 *
 * and returns 0 or an error, which ends the loop. So that every library does the same work:
 *
 *   turn   (passive) data and what completes them, then the flag and what completes it
 *   turn   (active)  data and the calls that complete them (fence; start … complete); no flag
 *   await  (passive) poll the own flag, served as the library needs it
 *   await  (active)  the matching calls (fence; post … wait)
 *   operate          data and what completes them, nothing else
 */

#include "suite.h"

#define SUITE_INLINE inline __attribute__((always_inline))

/** Ranks take turns: one moves the data and signals the other, which waits for it. */
#define SUITE_DEFINE_THERE_AND_BACK(function, turn, await)                   \
  static int function(suite_spot_t* shared, int mine, uint64_t legs) {       \
    suite_spot_t spot = *shared; /* which the compiler keeps in registers */ \
    int error = 0;                                                           \
    for (; legs > 0 && error == 0; legs--, mine = !mine)                     \
      error = mine ? turn(&spot) : await(&spot);                             \
    *shared = spot;                                                          \
    return error;                                                            \
  }

#define SUITE_DEFINE_ONE_SIDE(function, operate)                       \
  static int function(suite_spot_t* shared, int mine, uint64_t legs) { \
    suite_spot_t spot = *shared;                                       \
    int error = 0;                                                     \
    (void)mine;                                                        \
    for (; legs > 0 && error == 0; legs--) error = operate(&spot);     \
    *shared = spot;                                                    \
    return error;                                                      \
  }

/** Registers loops for transfers of `bytes` bytes (0: any); `one_side` may be NULL. */
#define SUITE_REGISTER_LOOPS(identifier, name, summary, bytes, there_and_back, one_side) \
  static suite_loop_block_t identifier = {                                               \
      {SUITE_LOOP, name, summary, NULL}, bytes, there_and_back, one_side};               \
  SUITE_REGISTER(identifier)

#endif

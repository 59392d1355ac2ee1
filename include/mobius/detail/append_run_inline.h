/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DETAIL_APPEND_RUN_INLINE_H
#define MOBIUS_DETAIL_APPEND_RUN_INLINE_H

/* The inlined paths of the calls that only start a put or get. Not an interface: programs call
 * nothing here.
 *
 * A program that puts or gets neighbouring bytes one by one to or from another host extends the
 * operation that the scheduler recorded last: some thirty instructions per call, none of them
 * atomic (src/engine/scheduler/append_run.h). The out-of-line call handles all other cases, and
 * opens such a run. */

#include <mobius/detail/bias_inline.h>
#include <mobius/memory.h>

/* Shorter calls may be values, which must stay whole; the scheduler orders longer ones itself. */
enum { MOB_APPEND_RUN_LEAST_BYTES_ = 9, MOB_APPEND_RUN_MOST_BYTES_ = 4096 };
/* Another allocation may begin at a multiple of this, so no run extends across one. */
enum { MOB_APPEND_RUN_UNIT_ = 2 << 20 };

typedef struct mob_append_run_ {
  /* End of the last operation at both sides, if a call that continues there may extend it; else
   * null. Changed under the lock; read without it first, to find out whether taking the lock is
   * worth while. */
  const char* next_local;
  uint64_t next_remote;
  mob_bias_t_ bias; /* bias of the lock, which guards the members below */
  uint64_t who;     /* mob_append_run_of_() the last operation, if it can be extended */
  /* Number of further calls that the thread with the bias may record this way, including the calls
   * that extended the operation and are not counted in it yet (bias.further). */
  uint32_t left;
} mob_append_run_t_;

/* The run that was last opened to the thread with its bias, or one that is never open. Any thread
 * may have published it; threads without the bias cannot use it. */
extern MOB_API mob_append_run_t_* mob_append_run_;

MOB_API mob_status_t mob_put_nbi_out_of_line_(mob_rank_t rank, void* remote, const void* here,
                                              size_t bytes);
MOB_API mob_status_t mob_get_nbi_out_of_line_(mob_rank_t rank, const void* remote, void* here,
                                              size_t bytes);

MOB_INLINE_PART_ uint64_t mob_append_run_of_(mob_rank_t rank, int is_get) {
  return (uint64_t)(uint32_t)is_get << 32 | (uint32_t)rank;
}

/* Whether a call may extend the last operation, as far as can be told without the lock. */
MOB_INLINE_PART_ int mob_append_run_is_next_(const mob_append_run_t_* run, const void* remote,
                                             const void* here, size_t bytes) {
  return __atomic_load_n(&run->next_local, __ATOMIC_RELAXED) == (const char*)here &&
         __atomic_load_n(&run->next_remote, __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)remote &&
         ((uintptr_t)remote & (MOB_APPEND_RUN_UNIT_ - 1)) != 0 &&
         bytes - MOB_APPEND_RUN_LEAST_BYTES_ <=
             MOB_APPEND_RUN_MOST_BYTES_ - MOB_APPEND_RUN_LEAST_BYTES_;
}

/* Extends the last operation by a call of the calling thread: 1 if it did. */
MOB_INLINE_PART_ int mob_append_run_goes_on_(mob_rank_t rank, int is_get, const void* remote,
                                             const void* here, size_t bytes) {
  mob_append_run_t_* const run = __atomic_load_n(&mob_append_run_, __ATOMIC_RELAXED);
  int goes_on;
  if (!mob_append_run_is_next_(run, remote, here, bytes)) return 0;
  if (!mob_bias_enter_(&run->bias)) return 0;
  /* From here on no other thread changes anything, and none has since the reads above, because the
   * bias stayed with this thread. */
  goes_on = run->who == mob_append_run_of_(rank, is_get) && run->bias.further < run->left;
  if (MOB_LIKELY(goes_on)) {
    __atomic_store_n(&run->next_local, (const char*)here + bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&run->next_remote, (uint64_t)(uintptr_t)remote + bytes, __ATOMIC_RELAXED);
    ++run->bias.further;
  }
  mob_bias_leave_(&run->bias);
  return goes_on;
}

MOB_INLINE mob_status_t mob_put_nbi(mob_rank_t rank, void* remote, const void* here, size_t bytes) {
  return mob_append_run_goes_on_(rank, 0, remote, here, bytes)
             ? MOB_OK
             : mob_put_nbi_out_of_line_(rank, remote, here, bytes);
}

MOB_INLINE mob_status_t mob_get_nbi(mob_rank_t rank, const void* remote, void* here, size_t bytes) {
  return mob_append_run_goes_on_(rank, 1, remote, here, bytes)
             ? MOB_OK
             : mob_get_nbi_out_of_line_(rank, remote, here, bytes);
}

#endif

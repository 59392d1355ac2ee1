/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DETAIL_BIAS_INLINE_H
#define MOBIUS_DETAIL_BIAS_INLINE_H

/*
 * The inlined part of a lock that one thread acquires by plain loads and stores
 * (src/os/biased_lock.h). Not an interface: nothing here is called by programs.
 */

#include <mobius/platform.h>

#include <errno.h>

typedef struct mob_bias_ {
  const void* thread; /* mob_thread_() of the one that has the bias; null: none has */
  uint32_t uses;      /* by that thread, since it has the bias … */
  uint32_t further;   /* … and those that the lock's owner has yet to add to them */
  uint8_t inside;     /* that thread holds the lock */
} mob_bias_t_;

/* What no two threads have at a time: where the calling thread's own variables are. Asked for anew
 * each time (volatile): a fiber may go on in another thread after any call. */
MOB_INLINE_PART_ const void* mob_thread_(void) {
#if defined(__x86_64__)
  const void* self;
  __asm__ volatile("movq %%fs:0, %0" : "=r"(self));
  return self;
#elif defined(__aarch64__)
  const void* self;
  __asm__ volatile("mrs %0, tpidr_el0" : "=r"(self));
  return self;
#else
  return &errno;
#endif
}

MOB_INLINE_PART_ void mob_bias_leave_(mob_bias_t_* bias) {
  __atomic_store_n(&bias->inside, 0, __ATOMIC_RELEASE);
}

/* 1 if the calling thread has the bias; then it holds the lock until mob_bias_leave_(). The fence
 * is half of one, no instruction: who takes the bias away has the other half (membarrier(2)). */
MOB_INLINE_PART_ int mob_bias_enter_(mob_bias_t_* bias) {
  const void* const me = mob_thread_();
  if (__atomic_load_n(&bias->thread, __ATOMIC_RELAXED) != me) return 0;
  __atomic_store_n(&bias->inside, 1, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (MOB_UNLIKELY(__atomic_load_n(&bias->thread, __ATOMIC_RELAXED) != me)) {
    mob_bias_leave_(bias);
    return 0;
  }
  return 1;
}

#endif

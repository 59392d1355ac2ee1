/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DETAIL_BIAS_INLINE_H
#define MOBIUS_DETAIL_BIAS_INLINE_H

/* The inlined part of a lock that one thread acquires by plain loads and stores
 * (src/os/sync/biased_lock.h). Not an interface: programs call nothing here. */

#include <mobius/platform.h>

#include <errno.h>

typedef struct mob_bias_ {
  const void* thread; /* mob_thread_() of the thread that has the bias; null: none */
  uint32_t uses;      /* uses by that thread, since it has the bias */
  uint32_t further;   /* further uses, which the lock's owner has not added to `uses` yet */
  uint8_t inside;     /* 1 while that thread holds the lock */
} mob_bias_t_;

/* A value that is different in every thread at one time: the address of the calling thread's own
 * variables. Read anew each time (volatile), because a fiber may continue in another thread after
 * any call. */
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
 * is one half of an asymmetric fence and emits no instruction; the thread that takes the bias away
 * executes the other half (membarrier(2)). */
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

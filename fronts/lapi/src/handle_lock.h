// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The lock of a handle that LAPI_Util(LAPI_GET_THREAD_FUNC) gives to programs. While it is held the
// library's thread serves nobody, so that header handlers run only in calls of LAPI.

#include <pthread.h>

#include <atomic>

namespace lapi {

class HandleLock {
 public:
  int lock();
  int try_lock();
  int unlock();
  int owner(pthread_t* thread) const;
  int wait(pthread_cond_t* condition, const timespec* until);

 private:
  void hold();

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<bool> held_ = false;
  std::atomic<pthread_t> owner_{};
};

// Interrupts as a program asked for them, less the locks that are held: whether the library's
// thread may serve. Counts those who say no.
int forbid_interrupts();
int allow_interrupts();

}  // namespace lapi

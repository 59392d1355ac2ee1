// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The lock of a handle, which LAPI_Util(LAPI_GET_THREAD_FUNC) gives to programs. While a thread
// holds it, the library's thread serves no requests, so header handlers run only in calls of LAPI.

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

// Forbids or allows the library's thread to serve requests. Counts the requests of programs and the
// held locks that forbid it; it serves when there is none.
int forbid_interrupts();
int allow_interrupts();

}  // namespace lapi

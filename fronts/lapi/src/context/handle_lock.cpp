// SPDX-License-Identifier: BSD-3-Clause
#include "context/handle_lock.h"

#include <mobius/message.h>

#include <cerrno>
#include <mutex>

#include "context/context.h"

namespace lapi {
namespace {

std::mutex interrupts_mutex;
unsigned forbidden = 0;  // number of locks held, and of programs' requests to forbid
mob_progress_t before_forbidden = MOB_PROGRESS_POLL;  // the mode before the first of them

}  // namespace

int forbid_interrupts() {
  const std::lock_guard lock(interrupts_mutex);
  if (forbidden == 0 && mob_progress_set(MOB_PROGRESS_POLL, &before_forbidden) != MOB_OK) {
    return LAPI_ERR_IN_HANDLER;
  }
  ++forbidden;
  return LAPI_SUCCESS;
}

int allow_interrupts() {
  const std::lock_guard lock(interrupts_mutex);
  if (forbidden == 0) return LAPI_SUCCESS;
  if (forbidden == 1 && mob_progress_set(before_forbidden, nullptr) != MOB_OK) {
    return LAPI_ERR_IN_HANDLER;
  }
  --forbidden;
  return LAPI_SUCCESS;
}

void HandleLock::hold() {
  owner_.store(pthread_self(), std::memory_order_relaxed);
  held_.store(true, std::memory_order_release);
}

int HandleLock::lock() {
  if (held_.load(std::memory_order_acquire) &&
      pthread_equal(owner_.load(std::memory_order_relaxed), pthread_self()) != 0) {
    return EDEADLK;
  }
  pthread_mutex_lock(&mutex_);
  hold();
  if (forbid_interrupts() == LAPI_SUCCESS) return LAPI_SUCCESS;
  held_.store(false, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex_);
  return LAPI_ERR_IN_HANDLER;
}

int HandleLock::try_lock() {
  if (pthread_mutex_trylock(&mutex_) != 0) return EBUSY;
  hold();
  if (forbid_interrupts() == LAPI_SUCCESS) return LAPI_SUCCESS;
  held_.store(false, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex_);
  return LAPI_ERR_IN_HANDLER;
}

int HandleLock::unlock() {
  if (!held_.load(std::memory_order_acquire) ||
      pthread_equal(owner_.load(std::memory_order_relaxed), pthread_self()) == 0) {
    return EPERM;
  }
  held_.store(false, std::memory_order_relaxed);
  const int status = allow_interrupts();
  pthread_mutex_unlock(&mutex_);
  return status;
}

int HandleLock::owner(pthread_t* thread) const {
  if (thread == nullptr) return EINVAL;
  *thread =
      held_.load(std::memory_order_acquire) ? owner_.load(std::memory_order_relaxed) : pthread_t{};
  return LAPI_SUCCESS;
}

int HandleLock::wait(pthread_cond_t* condition, const timespec* until) {
  if (condition == nullptr) return EINVAL;
  if (!held_.load(std::memory_order_acquire) ||
      pthread_equal(owner_.load(std::memory_order_relaxed), pthread_self()) == 0) {
    return EPERM;
  }
  held_.store(false, std::memory_order_relaxed);
  static_cast<void>(allow_interrupts());  // the thread that signals may be a handler
  const int status = until != nullptr ? pthread_cond_timedwait(condition, &mutex_, until)
                                      : pthread_cond_wait(condition, &mutex_);
  hold();
  static_cast<void>(forbid_interrupts());
  return status;
}

}  // namespace lapi

// SPDX-License-Identifier: BSD-3-Clause

// Locks between processes: acquire and release, alone and with another process that constantly
// wants the same lock.

#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include <memory>

#include "micro.h"

namespace micro {
namespace {

constexpr int kTimes = 20'000;
constexpr mob_rank_t kHost = 0;

// In the host's memory; all ranks use direct pointers.
struct Shared {
  alignas(128) pthread_mutex_t mutex;
  alignas(128) mob_lock_t lock;
  alignas(128) int semaphore;
  alignas(128) volatile uint64_t guarded;
};

class Locks {
 public:
  Locks() {
    void* pointer = nullptr;
    require(mob_ptr(kHost, shared_memory(sizeof(Shared), kHost), &pointer), "mob_ptr");
    shared_ = static_cast<Shared*>(pointer);
    if (mob_rank() == kHost) {
      pthread_mutexattr_t attributes;
      pthread_mutexattr_init(&attributes);
      pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      pthread_mutex_init(&shared_->mutex, &attributes);
      pthread_mutexattr_destroy(&attributes);
    }
    require(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes_), "mob_mutexes_create");
    require(mob_access_create(MOB_TEAM_WORLD, &access_), "mob_access_create");
  }

  // Nanoseconds per turn of all `contenders` together.
  template <typename Acquire, typename Release>
  double measure(mob_rank_t contenders, Acquire acquire, Release release) const {
    bind_to_processor(mob_rank());
    require(mob_barrier(), "mob_barrier");
    const double start = now_ns();
    if (mob_rank() < contenders) {
      for (int i = 0; i < kTimes; ++i) {
        acquire();
        shared_->guarded = shared_->guarded + 1;
        release();
      }
    }
    // If the host runs alone, it does not wait for the others, whose way into the barrier would
    // count.
    if (contenders > 1) require(mob_barrier(), "mob_barrier");
    return (now_ns() - start) / kTimes / contenders;
  }

  double with_pthread(mob_rank_t contenders) const {
    return measure(
        contenders, [this] { pthread_mutex_lock(&shared_->mutex); },
        [this] { pthread_mutex_unlock(&shared_->mutex); });
  }
  double with_lock(mob_rank_t contenders) const {
    return measure(
        contenders, [this] { require(mob_lock(&shared_->lock, nullptr), "mob_lock"); },
        [this] { require(mob_unlock(&shared_->lock), "mob_unlock"); });
  }
  double with_mutexes(mob_rank_t contenders) const {
    return measure(
        contenders,
        [this] { require(mob_mutex_lock(mutexes_, 0, kHost, nullptr), "mob_mutex_lock"); },
        [this] { require(mob_mutex_unlock(mutexes_, 0, kHost), "mob_mutex_unlock"); });
  }
  double with_access(mob_rank_t contenders, mob_access_mode_t mode) const {
    return measure(
        contenders,
        [this, mode] { require(mob_access_lock(access_, kHost, mode, nullptr), "lock"); },
        [this] { require(mob_access_unlock(access_, kHost), "unlock"); });
  }
  double with_semaphore(mob_rank_t contenders) const {
    if (mob_rank() == kHost) {
      shared_->semaphore = semget(IPC_PRIVATE, 1, 0600);
      step(1);
    }
    require(mob_barrier(), "mob_barrier");
    const double result = measure(contenders, [this] { step(-1); }, [this] { step(1); });
    require(mob_barrier(), "mob_barrier");
    if (mob_rank() == kHost) semctl(shared_->semaphore, 0, IPC_RMID);
    return result;
  }

 private:
  void step(short by) const {
    sembuf operation{0, by, 0};
    if (semop(shared_->semaphore, &operation, 1) != 0) mob_abort(1, "semop failed");
  }

  Shared* shared_;
  mob_mutexes_t mutexes_ = nullptr;
  mob_access_t access_ = nullptr;
};

std::vector<Variant> variants(const std::shared_ptr<Locks>& locks, mob_rank_t contenders) {
  return {
      {"pthread mutex, process-shared", [=] { return locks->with_pthread(contenders); }},
      {"mob_lock", [=] { return locks->with_lock(contenders); }},
      {"mob_mutex_lock", [=] { return locks->with_mutexes(contenders); }},
      {"mob_access_lock, exclusive", [=] { return locks->with_access(contenders, MOB_EXCLUSIVE); }},
      {"mob_access_lock, shared", [=] { return locks->with_access(contenders, MOB_SHARED); }},
      {"System V semaphore", [=] { return locks->with_semaphore(contenders); }},
  };
}

}  // namespace

std::vector<Benchmark> lock_benchmarks() {
  const auto locks = std::make_shared<Locks>();
  std::vector<Benchmark> result = {
      {"lock", "acquire and release a lock that nobody else wants", variants(locks, 1)}};
  if (mob_size() > 1) {
    result.push_back({"lock_contended",
                      "one turn of a lock that two processes take again and again",
                      variants(locks, 2)});
  }
  return result;
}

}  // namespace micro

// SPDX-License-Identifier: BSD-3-Clause
#include "context/completion_threads.h"

#include <ctime>

namespace lapi {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kPatience(1);
// A handler that uses less of a second is blocked, or sleeps between looks. One that computes gets
// more even on a machine with ten times as many programs as processors.
constexpr std::chrono::milliseconds kLeastOfASecond(50);

// The pool that the calling thread belongs to.
constinit thread_local const void* current_pool = nullptr;

}  // namespace

struct CompletionThreads::Pool::Start {
  std::shared_ptr<Pool> pool;
  size_t index;
};

void CompletionThreads::open(int threads, const com_thread_info_t* attributes) {
  pool_ = std::make_shared<Pool>();
  if (threads > 0) pool_->most = static_cast<size_t>(threads);
  if (attributes != nullptr) pool_->attributes = *attributes;
}

bool CompletionThreads::is_inside() { return current_pool != nullptr; }

void* CompletionThreads::Pool::main(void* start) {
  const std::unique_ptr<Start> mine(static_cast<Start*>(start));
  Pool& pool = *mine->pool;
  current_pool = &pool;
  if (pool.attributes.init_func != nullptr) pool.attributes.init_func();
  pool.work(mine->index);
  return nullptr;
}

void CompletionThreads::Pool::work(size_t index) {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait(lock, [this] { return ending || !queue.empty(); });
    --idle;
    if (ending) return;
    const Work next = queue.front();
    queue.pop_front();
    ++running;
    threads[index].is_busy = true;
    lock.unlock();
    next.run(next.argument);
    lock.lock();
    if (ending) return;  // close() left this thread to itself
    threads[index].is_busy = false;
    --running;
    ++ended;
    if (queue.empty() && running <= 1) changed.notify_all();
  }
}

nanoseconds CompletionThreads::Pool::processor_time() const {
  nanoseconds sum(0);
  for (const Thread& thread : threads) {
    clockid_t clock = 0;
    timespec time = {};
    if (pthread_equal(thread.id, pthread_self()) != 0) continue;
    if (pthread_getcpuclockid(thread.id, &clock) == 0 && clock_gettime(clock, &time) == 0) {
      sum += std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
    }
  }
  return sum;
}

bool CompletionThreads::Pool::start_one() {
  threads.reserve(threads.size() + 1);  // before a thread exists that must be joined
  auto start = std::make_unique<Start>(shared_from_this(), threads.size());
  pthread_t thread;
  if (pthread_create(&thread, attributes.attr, main, start.get()) != 0) return !threads.empty();
  static_cast<void>(start.release());
  threads.push_back({thread, false});
  return true;
}

void CompletionThreads::add(Work work) {
  {
    Pool& pool = *pool_;
    const std::lock_guard lock(pool.mutex);
    const bool enough = pool.idle > pool.queue.size() || pool.threads.size() >= pool.most;
    if (enough || pool.start_one()) {
      pool.queue.push_back(work);
      pool.changed.notify_all();
      return;
    }
  }
  work.run(work.argument);
}

void CompletionThreads::drain() {
  Pool& pool = *pool_;
  std::unique_lock lock(pool.mutex);
  const size_t own = current_pool == &pool ? 1 : 0;
  const auto is_done = [&] { return pool.queue.empty() && pool.running == own; };
  uint64_t ended = pool.ended;
  nanoseconds begin = pool.processor_time();  // of the handlers that run now
  nanoseconds last = begin;
  while (!pool.changed.wait_for(lock, kPatience, is_done)) {
    const nanoseconds now = pool.processor_time();
    if (pool.ended != ended) {
      ended = pool.ended;
      begin = now;
    } else if (now - last < kLeastOfASecond || now - begin >= kPatience) {
      return;
    }
    last = now;
  }
}

void CompletionThreads::close() {
  std::vector<Pool::Thread> threads;
  std::deque<Work> unstarted;
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->ending = true;
    threads.swap(pool_->threads);
    unstarted.swap(pool_->queue);
    pool_->changed.notify_all();
  }
  for (const Work& work : unstarted) work.discard(work.argument);
  for (const Pool::Thread& thread : threads) {
    if (thread.is_busy) {
      pthread_detach(thread.id);
    } else {
      pthread_join(thread.id, nullptr);
    }
  }
}

}  // namespace lapi

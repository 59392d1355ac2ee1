// SPDX-License-Identifier: BSD-3-Clause
#include "context/completion_threads.h"

namespace lapi {

void CompletionThreads::open(int threads, const com_thread_info_t* attributes) {
  const std::lock_guard lock(mutex_);
  most_ = threads > 0 ? static_cast<size_t>(threads) : 1;
  attributes_ = attributes != nullptr ? *attributes : com_thread_info_t{};
  ending_ = false;
}

void* CompletionThreads::main(void* self) {
  auto* threads = static_cast<CompletionThreads*>(self);
  if (threads->attributes_.init_func != nullptr) threads->attributes_.init_func();
  threads->work();
  return nullptr;
}

void CompletionThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const Work next = queue_.front();
    queue_.pop_front();
    ++running_;
    lock.unlock();
    next.run(next.argument);
    lock.lock();
    --running_;
    if (queue_.empty() && running_ == 0) changed_.notify_all();
  }
}

bool CompletionThreads::start_one() {
  threads_.reserve(threads_.size() + 1);  // before a thread exists that must be joined
  pthread_t thread;
  if (pthread_create(&thread, attributes_.attr, main, this) != 0) return !threads_.empty();
  threads_.push_back(thread);
  return true;
}

void CompletionThreads::add(Work work) {
  {
    const std::lock_guard lock(mutex_);
    const bool enough = idle_ > queue_.size() || threads_.size() >= most_;
    if (enough || start_one()) {
      queue_.push_back(work);
      changed_.notify_all();
      return;
    }
  }
  work.run(work.argument);
}

void CompletionThreads::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && running_ == 0; });
}

void CompletionThreads::close() {
  std::vector<pthread_t> threads;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && running_ == 0; });
    ending_ = true;
    threads.swap(threads_);
    changed_.notify_all();
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

}  // namespace lapi

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The threads that run completion handlers, which may wait for anything.

#include <lapi.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

namespace lapi {

class CompletionThreads {
 public:
  struct Work {
    void (*run)(void*);
    void* argument;
  };

  // Sets the largest number of threads, and how they begin. Threads are started when there is work.
  void open(int threads, const com_thread_info_t* attributes);
  // Any thread may call it, also in handlers. If no thread can be started, it runs the work itself.
  void add(Work work);
  // Waits until all added work has been run.
  void drain();
  // As drain(), then ends the threads.
  void close();

 private:
  static void* main(void* self);
  void work();
  bool start_one();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  std::vector<pthread_t> threads_;
  com_thread_info_t attributes_ = {};
  size_t most_ = 1;
  size_t idle_ = 0;
  size_t running_ = 0;
  bool ending_ = false;
};

}  // namespace lapi

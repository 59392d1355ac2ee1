// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The threads that run completion handlers, which may wait for anything.

#include <lapi.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace lapi {

class CompletionThreads {
 public:
  struct Work {
    void (*run)(void*);
    void (*discard)(void*);  // instead of running it
    void* argument;
  };

  // Sets the largest number of threads, and how they begin. Threads are started when there is work.
  void open(int threads, const com_thread_info_t* attributes);
  // Any thread may call it, also in handlers. If no thread can be started, it runs the work itself.
  void add(Work work);
  // Waits until all added work has been run, but for the work that called this function. Gives up
  // when none of it ends or computes for a second, since a handler may be blocked for ever, and
  // when it has computed for a second of processor time since the last piece ended.
  void drain();
  // Discards work that has not begun, and ends the threads. One that still runs work ends after it.
  void close();

  // Whether the calling thread is of this kind.
  static bool is_inside();

 private:
  // Shared by the threads, because one that close() left behind may be there longer than this
  // object, or see it opened again.
  struct Pool : std::enable_shared_from_this<Pool> {
    struct Thread {
      pthread_t id;
      bool is_busy;
    };
    struct Start;

    static void* main(void* start);
    void work(size_t index);
    bool start_one();
    // Of all threads but the caller. The mutex is held.
    std::chrono::nanoseconds processor_time() const;

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Work> queue;
    std::vector<Thread> threads;
    com_thread_info_t attributes = {};
    size_t most = 1;
    size_t idle = 0;
    size_t running = 0;
    uint64_t ended = 0;  // pieces of work
    bool ending = false;
  };

  std::shared_ptr<Pool> pool_;
};

}  // namespace lapi

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// epoll with tags instead of pointers: an event that arrives for something already closed finds a
// closed slot, not freed memory.

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <system_error>

namespace mobius::launch {

enum class Source : uint32_t {
  kFront,       // signals to pass on, and the life of the front process
  kChildren,    // SIGCHLD
  kListener,    // processes that want to join
  kConnection,  // one of them; the index is its slot
  kDetached,    // a rank without connection has ended; the index is the rank
  kStreams,     // output of ranks; the index is the sink it goes to
  kSink         // standard output or standard error took what was written; index: the sink
};

struct Tag {
  Source source;
  uint32_t index = 0;
};

class Poller {
 public:
  Poller() : descriptor_(epoll_create1(EPOLL_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  }
  ~Poller() { close(descriptor_); }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // False when the descriptor is of a kind that never blocks (a file, /dev/null).
  bool add(int descriptor, uint32_t events, Tag tag) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = (static_cast<uint64_t>(tag.source) << 32) | tag.index;
    if (epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event) == 0) return true;
    if (errno == EPERM) return false;
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
  void remove(int descriptor) { epoll_ctl(descriptor_, EPOLL_CTL_DEL, descriptor, nullptr); }

  // How many events came; 0 after `timeout_ms` (negative: no limit) or a signal.
  size_t wait(std::span<epoll_event> events, int timeout_ms) {
    const int count =
        epoll_wait(descriptor_, events.data(), static_cast<int>(events.size()), timeout_ms);
    return count < 0 ? 0 : static_cast<size_t>(count);
  }

  static Tag tag(const epoll_event& event) {
    return {static_cast<Source>(event.data.u64 >> 32), static_cast<uint32_t>(event.data.u64)};
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace mobius::launch

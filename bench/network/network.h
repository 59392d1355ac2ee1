// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Two processes, a left one that measures and a right one that answers, and several transports
// between them. The transports take turns in each round.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace network {

inline constexpr size_t kLargeBytes = size_t{1} << 20;

// One side of a transport. Both sides call each function with the same number of turns; the left
// side returns nanoseconds of one turn.
class Way {
 public:
  virtual ~Way() = default;
  // 8 bytes there and back; a turn is half of it. Both ends poll, or sleep until something comes.
  virtual double ping_pong(int turns, bool sleeping) = 0;
  // A write of 8 bytes, until its completion at the other side is known.
  virtual double small_write(int turns) = 0;
  virtual double small_read(int turns) = 0;
  // kLargeBytes from left to right, until the left side knows of their arrival; `window` in flight.
  virtual double large_write(int turns, int window) = 0;
  virtual double large_read(int turns, int window) = 0;
  // Between experiments: sends everything that is still queued.
  virtual void progress() {}
};

// The pipe between both processes, to exchange addresses and to meet.
class Link {
 public:
  Link(int read_end, int write_end) : in_(read_end), out_(write_end) {}
  void put(const void* bytes, size_t count);
  void get(void* bytes, size_t count);
  void meet(const std::function<void()>& meanwhile);

 private:
  int in_, out_;
};

[[noreturn]] void give_up(const std::string& text);

struct Setup {
  bool left;
  std::string address;  // both ends bind to it
  Link* link;
};

std::unique_ptr<Way> plain_socket(const Setup& setup);
std::unique_ptr<Way> transport(const Setup& setup, const std::string& provider);

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds of one of `turns` turns; the first tenth does not count.
template <typename Turn>
double time_turns(int turns, Turn turn) {
  const int cold = turns / 10;
  double start = now_ns();
  for (int i = 0; i < turns; ++i) {
    if (i == cold) start = now_ns();
    turn(i);
  }
  return (now_ns() - start) / (turns - cold);
}

}  // namespace network

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What is typed at a terminal, passed on to rank 0.
//
// Ranks are background process groups, which a terminal stops when they read it; the launcher is
// in the foreground and reads for rank 0. Anything but a terminal rank 0 inherits as it is, so that
// nothing is taken that the program does not read.

#include <chrono>
#include <string>

#include "job/launch/poller.h"

namespace mobius::launch {

class TerminalInput {
 public:
  explicit TerminalInput(Poller& poller) : poller_(poller) {}
  ~TerminalInput() { end(); }
  TerminalInput(const TerminalInput&) = delete;
  TerminalInput& operator=(const TerminalInput&) = delete;

  // The end that rank 0 reads; the caller closes it after the start. -1 with errno when there is
  // no descriptor left.
  int open();

  void on_terminal();  // Source::kTerminal
  void on_room();      // Source::kTerminalPipe
  void pause();
  void resume();
  void end();

  // While somebody else owns the terminal, when to look again; max() otherwise.
  std::chrono::steady_clock::time_point retry() const { return retry_; }

 private:
  static constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  void watch(bool terminal, bool room);

  Poller& poller_;
  int pipe_ = -1;
  std::string typed_;  // read but not yet taken by rank 0
  bool watching_terminal_ = false;
  bool watching_room_ = false;
  std::chrono::steady_clock::time_point retry_ = kNever;
};

}  // namespace mobius::launch

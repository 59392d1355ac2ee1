// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <signal.h>

#include <array>

namespace mobius::os {

// During its lifetime, threads that are started block all signals, so that signals of the program
// are never handled by a thread that the program does not know.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// During its lifetime, foreign code may install handlers of signals. The destructor restores the
// former handlers, because signals belong to the program. Not for two threads at once.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (int signal = 1; signal < kSignals; ++signal) {
      known_[at(signal)] = sigaction(signal, nullptr, &before_[at(signal)]) == 0;
    }
  }
  ~SignalHandlersKept() {
    for (int signal = 1; signal < kSignals; ++signal) {
      struct sigaction now{};
      if (!known_[at(signal)] || sigaction(signal, nullptr, &now) != 0) continue;
      // The larger member of the union; a plain handler is part of its bits.
      if (now.sa_sigaction == before_[at(signal)].sa_sigaction) continue;
      sigaction(signal, &before_[at(signal)], nullptr);
    }
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

 private:
  static constexpr int kSignals = 32;  // real-time signals have no defaults worth restoring
  static constexpr size_t at(int signal) { return static_cast<size_t>(signal); }

  std::array<struct sigaction, kSignals> before_{};
  std::array<bool, kSignals> known_{};
};

}  // namespace mobius::os

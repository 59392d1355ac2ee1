// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/terminal_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace mobius::launch {

int TerminalInput::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  pipe_ = ends[1];
  resume();
  return ends[0];
}

void TerminalInput::watch(bool terminal, bool room) {
  if (terminal != watching_terminal_) {
    if (!terminal) {
      poller_.remove(STDIN_FILENO);
    } else if (!poller_.add(STDIN_FILENO, EPOLLIN, {Source::kTerminal})) {
      return;
    }
    watching_terminal_ = terminal;
  }
  if (room != watching_room_) {
    if (room) {
      poller_.add(pipe_, EPOLLOUT, {Source::kTerminalPipe});
    } else {
      poller_.remove(pipe_);
    }
    watching_room_ = room;
  }
}

void TerminalInput::on_terminal() {
  if (pipe_ < 0) return;
  if (tcgetpgrp(STDIN_FILENO) != getpgrp()) {
    // Reading would fail; what is typed is for the shell. Nothing tells us when that changes.
    pause();
    retry_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    return;
  }
  char buffer[4096];
  const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
  if (got > 0) {
    typed_.append(buffer, static_cast<size_t>(got));
    on_room();
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    end();
  }
}

void TerminalInput::on_room() {
  if (pipe_ < 0) return;
  if (!typed_.empty()) {
    const ssize_t wrote = write(pipe_, typed_.data(), typed_.size());
    if (wrote > 0) {
      typed_.erase(0, static_cast<size_t>(wrote));
    } else if (errno != EAGAIN && errno != EINTR) {
      end();  // rank 0 reads no more
      return;
    }
  }
  watch(typed_.empty(), !typed_.empty());
}

void TerminalInput::pause() {
  if (pipe_ >= 0) watch(false, false);
}

void TerminalInput::resume() {
  retry_ = kNever;
  if (pipe_ >= 0) watch(typed_.empty(), !typed_.empty());
}

void TerminalInput::end() {
  if (pipe_ < 0) return;
  retry_ = kNever;
  watch(false, false);
  close(pipe_);
  pipe_ = -1;
}

}  // namespace mobius::launch

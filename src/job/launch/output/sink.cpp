// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/output/sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

namespace mobius::launch {

Sink::Sink(int descriptor) : descriptor_(descriptor) {
  struct stat information{};
  if (fstat(descriptor, &information) != 0) return;
  if (S_ISREG(information.st_mode) || S_ISBLK(information.st_mode)) {
    kind_ = Kind::kDirect;
  } else if (S_ISSOCK(information.st_mode)) {
    kind_ = Kind::kSocket;
  } else {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    const int reopened = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (reopened >= 0) {
      kind_ = Kind::kReopened;
      descriptor_ = reopened;
    }
  }
}

Sink::~Sink() {
  if (kind_ == Kind::kReopened) close(descriptor_);
}

void Sink::put(int writer, std::string_view text) {
  if (text.empty() || abandoned_) return;
  if (unfinished_ && last_writer_ != writer) queue_ += '\n';
  queue_ += text;
  last_writer_ = writer;
  unfinished_ = text.back() != '\n';
}

long Sink::write_some(std::string_view text) {
  switch (kind_) {
    case Kind::kDirect:
    case Kind::kReopened:
      return write(descriptor_, text.data(), text.size());
    case Kind::kSocket:
      return send(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::kCautious:
      break;
  }
  pollfd room{descriptor_, POLLOUT, 0};
  if (poll(&room, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return write(descriptor_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
}

void Sink::flush() {
  while (written_ < queue_.size()) {
    const long wrote = write_some(std::string_view(queue_).substr(written_));
    if (wrote >= 0) {
      written_ += static_cast<size_t>(wrote);
    } else if (errno == EAGAIN) {
      // Moving the rest to the front costs at most what was written since the last time.
      if (written_ >= queue_.size() / 2) {
        queue_.erase(0, written_);
        written_ = 0;
      }
      return;
    } else if (errno != EINTR) {
      error_ = errno;
      abandon();
      return;
    }
  }
  queue_.clear();
  written_ = 0;
}

void Sink::abandon() {
  abandoned_ = true;
  queue_.clear();
  written_ = 0;
}

}  // namespace mobius::launch

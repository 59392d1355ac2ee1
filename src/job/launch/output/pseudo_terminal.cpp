// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/output/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace mobius::launch {
namespace {

int open_other_end(int controller) {
  constexpr int kFlags = O_WRONLY | O_NOCTTY | O_CLOEXEC;
#ifdef TIOCGPTPEER
  // Works also where /dev/pts is that of another mount namespace.
  const int peer = ioctl(controller, TIOCGPTPEER, kFlags);
  if (peer >= 0) return peer;
#endif
  char name[64];
  if (ptsname_r(controller, name, sizeof name) != 0) return -1;
  return open(name, kFlags);
}

}  // namespace

bool open_pseudo_terminal(int ends[2]) {
  ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ends[0] < 0) return false;
  ends[1] = unlockpt(ends[0]) == 0 ? open_other_end(ends[0]) : -1;
  termios mode{};
  if (ends[1] >= 0 && tcgetattr(ends[1], &mode) == 0) {
    cfmakeraw(&mode);
    if (tcsetattr(ends[1], TCSANOW, &mode) == 0) {
      copy_terminal_size(ends[0]);
      return true;
    }
  }
  const int error = errno;
  for (int end = 0; end < 2; ++end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  errno = error;
  return false;
}

void copy_terminal_size(int reading_end) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ioctl(reading_end, TIOCSWINSZ, &size);
}

}  // namespace mobius::launch

// SPDX-License-Identifier: BSD-3-Clause
#include "os/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mobius::os {

uint64_t process_start_time(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  char text[1024];
  const size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[got] = '\0';
  // The second field is the program's name in parentheses and may hold anything; the start time is
  // the 22nd.
  const char* rest = std::strrchr(text, ')');
  if (rest == nullptr) return 0;
  ++rest;
  for (int field = 3; field < 22; ++field) {
    rest = std::strchr(rest + 1, ' ');
    if (rest == nullptr) return 0;
  }
  return std::strtoull(rest, nullptr, 10);
}

bool ProcessWatch::has_ended(pid_t pid, uint64_t start_time) {
  if (descriptor_ < 0) {
    descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    // Only now is it certain which process the descriptor stands for.
    if (process_start_time(pid) != start_time) return true;
    if (descriptor_ < 0) return false;
  }
  pollfd ended{descriptor_, POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

void ProcessWatch::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace mobius::os

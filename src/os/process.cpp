// SPDX-License-Identifier: BSD-3-Clause
#include "os/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mobius::os {

namespace {

// All of a file of /proc/PID, or nothing.
std::string read_file(pid_t pid, const char* name) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  std::FILE* file = std::fopen(path, "re");
  std::string text;
  if (file == nullptr) return text;
  char piece[4096];
  while (const size_t got = std::fread(piece, 1, sizeof piece, file)) text.append(piece, got);
  std::fclose(file);
  return text;
}

// A numeric field of /proc/PID/stat, by its number in proc(5), from 4 on; 0 if there is none.
uint64_t read_stat(pid_t pid, int field) {
  const std::string text = read_file(pid, "stat");
  // The second field is the program's name in parentheses and may hold anything.
  const char* rest = std::strrchr(text.c_str(), ')');
  if (rest == nullptr) return 0;
  ++rest;
  for (int at = 3; at < field; ++at) {
    rest = std::strchr(rest + 1, ' ');
    if (rest == nullptr) return 0;
  }
  return std::strtoull(rest, nullptr, 10);
}

}  // namespace

uint64_t process_start_time(pid_t pid) { return read_stat(pid, 22); }

pid_t process_parent(pid_t pid) { return static_cast<pid_t>(read_stat(pid, 4)); }

std::string process_environment(pid_t pid) { return read_file(pid, "environ"); }

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

// SPDX-License-Identifier: BSD-3-Clause
#include "os/process/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace mobius::os {

bool proc_is_ours() {
  char text[16];
  const ssize_t got = readlink("/proc/self", text, sizeof text - 1);
  if (got <= 0) return true;  // there is none, and none is confused with ours
  text[got] = '\0';
  return std::strtol(text, nullptr, 10) == getpid();
}

namespace {

// Opens a file of /proc/PID; on failure -1 with errno.
int open_file(pid_t pid, const char* name) {
  char path[48];
  if (pid == getpid()) {
    std::snprintf(path, sizeof path, "/proc/self/%s", name);
  } else if (proc_is_ours()) {
    std::snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  } else {
    errno = ENOTSUP;
    return -1;
  }
  return ::open(path, O_RDONLY | O_CLOEXEC);
}

ssize_t read_some(int descriptor, char* to, size_t bytes) {
  ssize_t got = 0;
  do {
    got = ::read(descriptor, to, bytes);
  } while (got < 0 && errno == EINTR);
  return got;
}

constexpr size_t kStatBytes = 2048;  // some 50 numbers, and a name of at most 64 bytes

// Reads a file of /proc/PID that is a "stat", and returns its field of this number in proc(5), from
// 3 on. Null if there is none; then errno is ENOENT or ESRCH if the process does not exist.
// Allocates nothing, because waiting threads call it.
const char* find_stat(pid_t pid, const char* name, int field, char (&text)[kStatBytes]) {
  const int descriptor = open_file(pid, name);
  if (descriptor < 0) return nullptr;
  const ssize_t got = read_some(descriptor, text, sizeof text - 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (got < 0) return nullptr;
  errno = 0;
  text[got] = '\0';
  // The second field is the program's name in parentheses and may contain any character.
  const char* rest = std::strrchr(text, ')');
  for (int at = 2; rest != nullptr && at < field; ++at) rest = std::strchr(rest + 1, ' ');
  return rest == nullptr ? nullptr : rest + 1;
}

// A numeric field of /proc/PID/stat, from 4 on. 0 if there is none, with errno as find_stat().
uint64_t read_stat(pid_t pid, int field) {
  char text[kStatBytes];
  const char* const found = find_stat(pid, "stat", field, text);
  return found == nullptr ? 0 : std::strtoull(found, nullptr, 10);
}

}  // namespace

uint64_t process_start_time(pid_t pid) { return read_stat(pid, 22); }

pid_t process_parent(pid_t pid) { return static_cast<pid_t>(read_stat(pid, 4)); }

bool process_is_ending(pid_t pid) {
  constexpr uint64_t kExiting = 4;  // PF_EXITING of the kernel
  if ((read_stat(pid, 9) & kExiting) == 0) return false;
  const int tasks = open_file(pid, "task");
  if (tasks < 0) return false;
  DIR* const folder = fdopendir(tasks);
  if (folder == nullptr) {
    ::close(tasks);
    return false;
  }
  bool are_all_ending = true;
  bool is_zombie_alone = true;
  while (const dirent* const entry = readdir(folder)) {
    const long thread = std::strtol(entry->d_name, nullptr, 10);
    if (thread <= 0) continue;
    char name[48];
    char text[kStatBytes];
    std::snprintf(name, sizeof name, "task/%ld/stat", thread);
    const char* const state = find_stat(pid, name, 3, text);
    if (state == nullptr) continue;  // has just ended
    is_zombie_alone = is_zombie_alone && thread == pid && *state == 'Z';
    // The flags are the sixth field behind the state.
    const char* flags = state;
    for (int at = 3; flags != nullptr && at < 9; ++at) flags = std::strchr(flags + 1, ' ');
    are_all_ending =
        are_all_ending && flags != nullptr && (std::strtoull(flags, nullptr, 10) & kExiting) != 0;
  }
  closedir(folder);
  return are_all_ending && !is_zombie_alone;
}

namespace {

std::string read_whole(pid_t pid, const char* name) {
  std::string text;
  const int descriptor = open_file(pid, name);
  if (descriptor < 0) return text;
  try {
    char piece[4096];
    for (ssize_t got = 0; (got = read_some(descriptor, piece, sizeof piece)) > 0;) {
      text.append(piece, static_cast<size_t>(got));
    }
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
  return text;
}

}  // namespace

std::string process_environment(pid_t pid) { return read_whole(pid, "environ"); }

std::string process_private_bytes(pid_t pid) { return read_whole(pid, "auxv"); }

namespace {

// Nothing if there is no mapping at all: the thread has ended.
std::optional<bool> has_mapped(std::FILE* maps, const struct stat& file) {
  char* line = nullptr;
  size_t room = 0;
  std::optional<bool> found;
  while (!found.value_or(false) && getline(&line, &room, maps) > 0) {
    found = is_mapping_of(line, file);
  }
  std::free(line);
  return found;
}

}  // namespace

bool is_mapping_of(const char* line, const struct stat& file) {
  unsigned major_number = 0;
  unsigned minor_number = 0;
  unsigned long inode = 0;
  return std::sscanf(line, "%*s %*s %*s %x:%x %lu", &major_number, &minor_number, &inode) == 3 &&
         makedev(major_number, minor_number) == file.st_dev && inode == file.st_ino;
}

std::optional<bool> has_mapped(pid_t pid, int file) {
  struct stat about{};
  if (fstat(file, &about) != 0 || !proc_is_ours()) return std::nullopt;
  // The first thread has no mappings any more if it has ended before the others.
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(opendir(folder.c_str()), &closedir);
  if (threads == nullptr && errno != ENOENT) return std::nullopt;
  bool refused = false;
  while (const dirent* thread = threads != nullptr ? readdir(threads.get()) : nullptr) {
    if (thread->d_name[0] == '.') continue;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(
        std::fopen((folder + '/' + thread->d_name + "/maps").c_str(), "re"), &std::fclose);
    if (maps == nullptr) {
      refused = refused || errno != ENOENT;
    } else if (const std::optional<bool> found = has_mapped(maps.get(), about)) {
      return found;
    }
  }
  return refused ? std::nullopt : std::optional(false);
}

Credentials Credentials::own() {
  return {geteuid(), getegid(), prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1};
}

bool ProcessWatch::has_ended(pid_t pid, uint64_t start_time) {
  if (!is_ours()) {
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    // Only now is it certain which process the descriptor refers to.
    const uint64_t started = process_start_time(pid);
    if (started != start_time) {
      const bool is_gone = started != 0 || errno == ENOENT || errno == ESRCH;
      // Where /proc is not ours the start time is not known, and the pid alone must do.
      if (!is_gone && errno == ENOTSUP && descriptor >= 0) {
        descriptor_.hold(descriptor);
        pollfd ended{descriptor, POLLIN, 0};
        return poll(&ended, 1, 0) > 0;
      }
      if (descriptor >= 0) ::close(descriptor);
      // A caller that could not check, for example for lack of descriptors, has seen no end.
      return is_gone || (kill(pid, 0) != 0 && errno == ESRCH);
    }
    if (descriptor < 0) return false;
    descriptor_.hold(descriptor);
  }
  pollfd ended{descriptor_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

// Before Linux 6.9 all pidfds, and some other descriptors, have one inode, so the kernel is also
// asked whether the number is a pidfd.
bool ProcessWatch::is_ours() const {
  const int descriptor = descriptor_.get();
  return descriptor >= 0 &&
         (syscall(SYS_pidfd_send_signal, descriptor, 0, nullptr, 0) == 0 || errno != EBADF);
}

}  // namespace mobius::os

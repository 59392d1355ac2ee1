// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/process/limits.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "job/control.h"
#include "os/memory/memory_limits.h"

namespace mobius::launch {
namespace {

// The launcher's descriptors: for each rank two for its output and one for its connection, and its
// own, with some to spare.
constexpr uint64_t kDescriptorsPerRank = 3;
constexpr uint64_t kOwnDescriptors = 40;
constexpr uint64_t kOwnProcesses = 2;
// Memory of the smallest program: page tables, kernel structures, stack and private pages of libc.
// Real programs need more, but how much is not known before they run.
constexpr uint64_t kLeastMemoryPerRank = uint64_t{512} << 10;
// Jobs up to this size start without a check of limits that take work to compute. Such a limit then
// shows when a start fails.
constexpr uint64_t kSmallJob = 64;

std::string read_line(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char line[256];
    if (std::fgets(line, sizeof line, file) != nullptr) text = line;
    std::fclose(file);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const std::string text = read_line(path);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 10);
}

uint64_t room(uint64_t limit, uint64_t used) { return limit - std::min(limit, used); }

void tighten(Limit* limit, uint64_t processes, std::string reason) {
  if (processes < limit->processes) *limit = {processes, std::move(reason)};
}

void check_descriptors(Limit* limit) {
  rlimit open_files{};
  if (getrlimit(RLIMIT_NOFILE, &open_files) != 0) return;  // not known is not zero
  if (open_files.rlim_max == RLIM_INFINITY) return;
  tighten(limit, room(open_files.rlim_max, kOwnDescriptors) / kDescriptorsPerRank,
          fmt::format("a process may open {} files (raise it with ulimit -Hn, or nofile in "
                      "/etc/security/limits.conf)",
                      open_files.rlim_max));
}

// Threads of this user, as RLIMIT_NPROC counts them.
uint64_t threads_of_user() {
  uint64_t threads = 0;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return 0;
  while (const dirent* entry = readdir(processes)) {
    if (std::atoi(entry->d_name) <= 0) continue;
    const std::string folder = std::string("/proc/") + entry->d_name + "/task";
    struct stat information{};
    if (stat(folder.c_str(), &information) == 0 && information.st_uid == getuid()) {
      threads += information.st_nlink - 2;  // one subfolder for each
    }
  }
  closedir(processes);
  return threads;
}

void check_user(Limit* limit, uint64_t wanted) {
  rlimit processes{};
  if (getrlimit(RLIMIT_NPROC, &processes) != 0) return;
  if (geteuid() == 0 || processes.rlim_cur == RLIM_INFINITY) return;  // root is exempt
  if (wanted <= kSmallJob && processes.rlim_cur > 16 * kSmallJob) return;
  const uint64_t used = threads_of_user();
  tighten(limit, room(processes.rlim_cur, used + kOwnProcesses),
          fmt::format("this user may have {} processes and has {} (raise it with ulimit -u, or "
                      "nproc in /etc/security/limits.conf)",
                      processes.rlim_cur, used));
}

void check_host(Limit* limit) {
  // "0.10 0.20 0.30 RUNNING/ALL LAST": ALL counts threads.
  const std::string load = read_line("/proc/loadavg");
  const size_t slash = load.find('/');
  const uint64_t used =
      slash == std::string::npos ? 0 : std::strtoull(load.c_str() + slash + 1, nullptr, 10);
  for (const char* name : {"pid_max", "threads-max"}) {
    const std::optional<uint64_t> most = read_number(std::string("/proc/sys/kernel/") + name);
    if (!most) continue;
    tighten(limit, room(*most, used + kOwnProcesses),
            fmt::format("kernel.{} is {} and {} are in use (raise it with sysctl kernel.{}=NUMBER)",
                        name, *most, used, name));
  }
}

// The limit of one control group and of all above it.
void check_groups(Limit* limit, const std::string& root, std::string group) {
  while (true) {
    const std::string folder = root + group;
    if (const std::optional<uint64_t> most = read_number(folder + "/pids.max")) {
      const uint64_t used = read_number(folder + "/pids.current").value_or(0);
      tighten(
          limit, room(*most, used + kOwnProcesses),
          fmt::format("the control group {} may have {} processes and has {} (raise {}/pids.max, "
                      "TasksMax of systemd, or --pids-limit of the container)",
                      group.empty() ? "/" : group, *most, used, folder));
    }
    if (group.empty() || group == "/") return;
    group.resize(group.rfind('/'));
  }
}

void check_control_groups(Limit* limit) {
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return;
  char line[4096];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    const char* controllers = std::strchr(line, ':');
    const char* group = controllers != nullptr ? std::strchr(controllers + 1, ':') : nullptr;
    if (group == nullptr) continue;
    const std::string names(controllers + 1, group);
    if (names.empty()) {
      check_groups(limit, "/sys/fs/cgroup", group + 1);
    } else if (names == "pids") {  // version 1
      check_groups(limit, "/sys/fs/cgroup/pids", group + 1);
    }
  }
  std::fclose(file);
}

void check_memory(Limit* limit, uint64_t wanted) {
  if (wanted <= kSmallJob) return;
  const uint64_t available = os::available_memory().bytes;
  tighten(limit, available / kLeastMemoryPerRank,
          fmt::format("{} MiB of memory are available and a process takes at least {} KiB",
                      available >> 20, kLeastMemoryPerRank >> 10));
}

}  // namespace

Limit process_limit(uint64_t wanted) {
  Limit limit{static_cast<uint64_t>(job::kMostLocalPeers),
              fmt::format("a host can have {} processes of a job", job::kMostLocalPeers)};
  check_descriptors(&limit);
  check_user(&limit, wanted);
  check_host(&limit);
  check_control_groups(&limit);
  check_memory(&limit, wanted);
  return limit;
}

Limit descriptor_limit() {
  Limit limit{static_cast<uint64_t>(job::kMostLocalPeers), ""};
  check_descriptors(&limit);
  return limit;
}

std::optional<rlimit> raise_descriptor_limit(uint64_t processes, uint64_t spare) {
  rlimit found{};
  if (getrlimit(RLIMIT_NOFILE, &found) != 0) return std::nullopt;
  const rlim_t needed = processes * kDescriptorsPerRank + kOwnDescriptors + spare;
  if (found.rlim_cur < needed) {
    rlimit raised = found;
    raised.rlim_cur = std::min(needed, found.rlim_max);
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  return found;
}

}  // namespace mobius::launch

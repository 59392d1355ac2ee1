// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/memory_limits.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "os/file/small_file.h"

namespace mobius::os {
namespace {

// The number behind a key that starts a line; nothing if the key is not there.
std::optional<uint64_t> number_after(const std::string& text, const std::string& key) {
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    return std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
  }
  return std::nullopt;
}

// The differences between the two versions of control groups.
struct GroupVersion {
  std::string_view controllers;  // in a line of /proc/self/cgroup
  std::string_view file_system;  // in a line of /proc/self/mountinfo
  std::string_view option;       // required of its mount
  const char* usual_mount;
  const char* limit;
  const char* usage;
  const char* cache;  // keys in memory.stat
  const char* shared;
};

constexpr GroupVersion kVersions[] = {
    {"", "cgroup2", "", "/sys/fs/cgroup", "/memory.max", "/memory.current", "file ", "shmem "},
    {"memory", "cgroup", "memory", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
     "/memory.usage_in_bytes", "total_cache ", "total_shmem "},
};

bool lists(std::string_view list, std::string_view word) {
  while (true) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    if (end == list.size()) return false;
    list.remove_prefix(end + 1);
  }
}

// This process's group in a version's hierarchy, as its control group namespace names it.
std::optional<std::string> own_group(const std::string& memberships, const GroupVersion& version) {
  std::istringstream lines(memberships);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (version.controllers.empty() ? !controllers.empty()
                                    : !lists(controllers, version.controllers)) {
      continue;
    }
    return line.substr(second + 1);
  }
  return std::nullopt;
}

// The place where a version's file system is mounted, and the group at that place.
struct Mount {
  std::string place;
  std::string group;
};

Mount find_mount(const std::string& mounts, const GroupVersion& version) {
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::string number;
    std::string device;
    Mount mount;
    std::istringstream(line) >> number >> number >> device >> mount.group >> mount.place;
    std::string type;
    std::string source;
    std::string options;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    if (type == version.file_system && (version.option.empty() || lists(options, version.option))) {
      return mount;
    }
  }
  return {version.usual_mount, "/"};
}

// The group's path below the mount. A container may see its own group as the root of the mount, and
// a process may be in a group that the mount does not show: then the mount's root is the nearest.
std::string below_mount(const std::string& group, const Mount& mount) {
  std::string path = group;
  if (mount.group != "/" && path.starts_with(mount.group)) path.erase(0, mount.group.size());
  if (path.find("/..") != std::string::npos || path == "/") path.clear();
  return path;
}

// Reads a group's own files, without those of the groups above it.
GroupLimit read_group(const std::string& root, const std::string& folder,
                      const GroupVersion& version) {
  GroupLimit found{folder};
  const std::string limit = read_small_file(root + folder + version.limit);
  const std::string usage = read_small_file(root + folder + version.usage);
  constexpr uint64_t kUnlimited = uint64_t{1} << 62;  // version 1 writes a huge number
  if (limit.empty() || usage.empty() || limit[0] == 'm') return found;  // "max"
  const uint64_t most = std::strtoull(limit.c_str(), nullptr, 10);
  if (most >= kUnlimited) return found;
  const uint64_t used = std::strtoull(usage.c_str(), nullptr, 10);
  const std::string stat = read_small_file(root + folder + "/memory.stat");
  // Page cache counts as used but can be dropped; shared memory is counted in it but cannot.
  const uint64_t cached = number_after(stat, version.cache).value_or(0);
  const uint64_t shared = number_after(stat, version.shared).value_or(0);
  const uint64_t droppable = cached - std::min(cached, shared);
  found.limit_bytes = most;
  found.room_bytes = most - std::min(most, used - std::min(used, droppable));
  return found;
}

std::string in_mib(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

GroupLimit tightest_group(const std::string& root) {
  const std::string memberships = read_small_file(root + "/proc/self/cgroup");
  const std::string mounts = read_small_file(root + "/proc/self/mountinfo");
  GroupLimit tightest;
  for (const GroupVersion& version : kVersions) {
    const std::optional<std::string> group = own_group(memberships, version);
    if (!group) continue;
    const Mount mount = find_mount(mounts, version);
    std::string path = below_mount(*group, mount);
    while (true) {
      const GroupLimit found = read_group(root, mount.place + path, version);
      if (found.room_bytes < tightest.room_bytes) tightest = found;
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return tightest;
}

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory found;
  const std::string host = read_small_file(root + "/proc/meminfo");
  if (const std::optional<uint64_t> available = number_after(host, "MemAvailable:")) {
    found.bytes = (*available + number_after(host, "SwapFree:").value_or(0)) * 1024;
  } else if (struct sysinfo all{}; sysinfo(&all) == 0) {  // needs neither /proc nor a descriptor
    found.bytes = (uint64_t{all.totalram} + all.totalswap) * all.mem_unit;
  }
  const GroupLimit group = tightest_group(root);
  if (group.room_bytes < found.bytes) {
    found.bytes = group.room_bytes;
    found.limited_by =
        "by the limit of " + in_mib(group.limit_bytes) + " of the control group " + group.folder;
  }
  return found;
}

std::string mapping_limit(int error) {
  // EAGAIN: mlockall(MCL_FUTURE) is in force, and more than the limit would be locked.
  const struct {
    int resource;
    const char* what;
    bool counts;
  } limits[] = {
      {RLIMIT_MEMLOCK, "on memory that it locks with mlockall() (ulimit -l)", error == EAGAIN},
      {RLIMIT_AS, "on its address space (ulimit -v)", error != EAGAIN},
      {RLIMIT_DATA, "on its private memory (ulimit -d)", error != EAGAIN}};
  std::string text;
  for (const auto& each : limits) {
    rlimit limit{};
    if (!each.counts || getrlimit(each.resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
      continue;
    }
    text += (text.empty() ? "raise the limit " : ", or ") + std::string(each.what) + ", " +
            std::to_string(limit.rlim_cur >> 20) + " MiB";
  }
  return text.empty() ? std::string("the kernel refuses: ") + std::strerror(error) : text;
}

}  // namespace mobius::os

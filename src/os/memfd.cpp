// SPDX-License-Identifier: BSD-3-Clause
#include "os/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/status.h"

namespace mobius::os {
namespace {

using base::fail_errno;

// Reads one small file of /proc or /sys; empty if it does not exist.
std::string read_file(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t got = 0;
    while ((got = std::fread(buffer, 1, sizeof buffer, file)) > 0) text.append(buffer, got);
    std::fclose(file);
  }
  return text;
}

uint64_t number_after(const std::string& text, const char* key) {
  const size_t at = text.find(key);
  return at == std::string::npos ? 0
                                 : std::strtoull(text.c_str() + at + std::strlen(key), nullptr, 10);
}

// The place of the groups of one version of control groups, and the names of their files.
struct GroupFiles {
  const char* membership;  // text after the number in this process's line of /proc/self/cgroup
  const char* root;
  const char* limit;
  const char* usage;
  const char* cache;  // key in memory.stat
};

constexpr GroupFiles kGroupFiles[] = {
    {"0::", "/sys/fs/cgroup", "/memory.max", "/memory.current", "\nfile "},
    {":memory:", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "\ntotal_cache "},
};

// The memory that the groups, from this process's up to the root, still allow.
uint64_t room_in_groups(const std::string& memberships, const GroupFiles& files) {
  const size_t at = memberships.find(files.membership);
  if (at == std::string::npos) return UINT64_MAX;
  std::string group = memberships.substr(at + std::strlen(files.membership));
  group.resize(std::min(group.find('\n'), group.size()));
  uint64_t room = UINT64_MAX;
  while (!group.empty() && group != "/") {
    const std::string folder = files.root + group;
    const std::string limit = read_file(folder + files.limit);
    if (!limit.empty() && limit[0] != 'm') {  // "max": no limit
      const uint64_t most = std::strtoull(limit.c_str(), nullptr, 10);
      const uint64_t used = std::strtoull(read_file(folder + files.usage).c_str(), nullptr, 10);
      const std::string stat = read_file(folder + "/memory.stat");
      // Page cache counts as used but can be dropped; shared memory is counted in it but cannot.
      const uint64_t cached = number_after(stat, files.cache);
      const uint64_t shared = number_after(stat, "\nshmem ") + number_after(stat, "\ntotal_shmem ");
      const uint64_t droppable = cached - std::min(cached, shared);
      room = std::min(room, most - std::min(most, used - std::min(used, droppable)));
    }
    group.resize(group.rfind('/'));
  }
  return room;
}

uint64_t control_group_room() {
  const std::string memberships = read_file("/proc/self/cgroup");
  uint64_t room = UINT64_MAX;
  for (const GroupFiles& files : kGroupFiles) {
    room = std::min(room, room_in_groups(memberships, files));
  }
  return room;
}

}  // namespace

mob_status_t memfd_create_sized(const char* name, size_t bytes, int* descriptor) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return fail_errno(MOB_ERR_SYSTEM, errno, "memfd_create failed; shared memory is not available");
  }
  mob_status_t status = MOB_OK;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    status = fail_errno(MOB_ERR_MEMORY, errno, "cannot make shared memory of %zu bytes", bytes);
  } else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    status = fail_errno(MOB_ERR_SYSTEM, errno, "sealing shared memory failed");
  }
  if (status != MOB_OK) {
    close(fd);
    return status;
  }
  *descriptor = fd;
  return MOB_OK;
}

mob_status_t memfd_reserve(int descriptor, uint64_t offset, size_t bytes) {
  if (bytes == 0) return MOB_OK;
  int result = 0;
  do {
    result = fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0
                 ? 0
                 : errno;
  } while (result == EINTR);
  if (result == 0) return MOB_OK;
  return fail_errno(MOB_ERR_MEMORY, result, "cannot reserve %zu bytes of shared memory", bytes);
}

void memfd_release(int descriptor, uint64_t offset, size_t bytes) {
  if (bytes == 0) return;
  while (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0 &&
         errno == EINTR) {
  }
}

std::string shared_huge_pages() {
  // "always within_size [advise] never deny force"
  const std::string choices = read_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const size_t open = choices.find('[');
  const size_t close = choices.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return choices.substr(open + 1, close - open - 1);
}

uint64_t available_memory() {
  const std::string host = read_file("/proc/meminfo");
  const uint64_t free_bytes =
      (number_after(host, "MemAvailable:") + number_after(host, "SwapFree:")) * 1024;
  return std::min(free_bytes, control_group_room());
}

}  // namespace mobius::os

// SPDX-License-Identifier: BSD-3-Clause

// Memory limits of control groups as a host, a container and a container with its own control group
// namespace show them, from files made for the test.

#include "os/memory/memory_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mobius::os {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A folder that stands for the root of a file system.
class FakeRoot {
 public:
  FakeRoot() {
    char name[] = "/tmp/mobius-limits-XXXXXX";
    folder_ = mkdtemp(name);
    write("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nSwapFree: 0 kB\n");
  }
  ~FakeRoot() { std::filesystem::remove_all(folder_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void group(const std::string& folder, uint64_t limit, uint64_t used, uint64_t cache) const {
    write(folder + "/memory.max", std::to_string(limit) + "\n");
    write(folder + "/memory.current", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "anon 1\nfile " + std::to_string(cache) + "\nshmem 0\n");
  }
  void old_group(const std::string& folder, uint64_t limit, uint64_t used) const {
    write(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(folder + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "cache 0\ntotal_cache 0\ntotal_shmem 0\n");
  }
  void remove(const std::string& path) const { std::filesystem::remove(folder_ + path); }
  const std::string& path() const { return folder_; }

 private:
  std::string folder_;
};

constexpr const char* kMountOfTwo =
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(MemoryLimits, WithoutGroupsTheHostCounts) {
  const FakeRoot root;
  EXPECT_EQ(available_memory(root.path()).bytes, 8192 * kMiB);
  EXPECT_EQ(available_memory(root.path()).limited_by, "");
  EXPECT_EQ(tightest_group(root.path()).limit_bytes, UINT64_MAX);
}

TEST(MemoryLimits, TheTightestGroupUpToTheRootCounts) {
  const FakeRoot root;
  root.write("/proc/self/cgroup", "0::/job/step\n");
  root.write("/proc/self/mountinfo", kMountOfTwo);
  root.group("/sys/fs/cgroup/job", 300 * kMiB, 250 * kMiB, 100 * kMiB);
  root.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  root.write("/sys/fs/cgroup/job/step/memory.current", "1000\n");
  const AvailableMemory found = available_memory(root.path());
  EXPECT_EQ(found.bytes, 150 * kMiB);  // page cache can go
  EXPECT_EQ(found.limited_by, "by the limit of 300 MiB of the control group /sys/fs/cgroup/job");
}

// In a control group namespace of its own a process is in the group "/", whose limit is at the
// mount.
TEST(MemoryLimits, InANamespaceOfItsOwnTheRootHasTheLimit) {
  const FakeRoot root;
  root.write("/proc/self/cgroup", "0::/\n");
  root.write("/proc/self/mountinfo", kMountOfTwo);
  root.group("/sys/fs/cgroup", 200 * kMiB, 20 * kMiB, 0);
  EXPECT_EQ(available_memory(root.path()).bytes, 180 * kMiB);
  EXPECT_EQ(tightest_group(root.path()).limit_bytes, 200 * kMiB);
}

// A container without such a namespace names its group by the host's path, but mounts it as root.
TEST(MemoryLimits, AContainerMountsItsGroupAsTheRoot) {
  const FakeRoot root;
  root.write("/proc/self/cgroup", "5:cpu:/docker/abc\n3:memory:/docker/abc\n0::/docker/abc\n");
  root.write("/proc/self/mountinfo",
             "41 40 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
             "42 40 0:32 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  root.old_group("/sys/fs/cgroup/memory", 100 * kMiB, 40 * kMiB);
  EXPECT_EQ(available_memory(root.path()).bytes, 60 * kMiB);
}

TEST(MemoryLimits, GroupsOfTheOldVersionAreFoundWhereTheyAreMounted) {
  const FakeRoot root;
  root.write("/proc/self/cgroup", "9:hugetlb,memory:/job\n");
  root.write("/proc/self/mountinfo",
             "41 40 0:31 / /groups/mem rw - cgroup cgroup rw,hugetlb,memory\n");
  root.old_group("/groups/mem/job", 100 * kMiB, 40 * kMiB);
  root.old_group("/groups/mem", uint64_t{1} << 63, 40 * kMiB);
  EXPECT_EQ(available_memory(root.path()).bytes, 60 * kMiB);
}

// Unknown is not zero.
TEST(MemoryLimits, WhereNothingCanBeReadAllOfTheHostsMemoryCounts) {
  const FakeRoot root;
  root.remove("/proc/meminfo");
  struct sysinfo all{};
  ASSERT_EQ(sysinfo(&all), 0);
  EXPECT_EQ(available_memory(root.path()).bytes,
            (uint64_t{all.totalram} + all.totalswap) * all.mem_unit);
  // A kernel before 3.14, or /proc with subset=pid: no such line.
  root.write("/proc/meminfo", "MemTotal: 16777216 kB\n");
  EXPECT_GT(available_memory(root.path()).bytes, 0u);
}

TEST(MemoryLimits, OfThisMachineArePlausible) {
  EXPECT_GT(available_memory().bytes, kMiB);
  EXPECT_LT(available_memory().bytes, uint64_t{1} << 50);
}

// The text names the limits that are set, and no other.
TEST(MappingLimit, NamesTheLimitThatIsInTheWay) {
  const auto with = [](int resource, rlim_t bytes, int error) {
    rlimit before{};
    getrlimit(resource, &before);
    const rlimit less{bytes, before.rlim_max};
    EXPECT_EQ(setrlimit(resource, &less), 0);
    const std::string text = mapping_limit(error);
    EXPECT_EQ(setrlimit(resource, &before), 0);
    return text;
  };
  const std::string data = with(RLIMIT_DATA, rlim_t{4096} << 20, ENOMEM);
  EXPECT_NE(data.find("(ulimit -d), 4096 MiB"), std::string::npos) << data;
  EXPECT_EQ(data.find("ulimit -l"), std::string::npos) << data;
  const std::string locked = with(RLIMIT_MEMLOCK, rlim_t{7} << 20, EAGAIN);
  EXPECT_NE(locked.find("(ulimit -l), 7 MiB"), std::string::npos) << locked;
  EXPECT_EQ(locked.find("ulimit -v"), std::string::npos) << locked;
}

}  // namespace
}  // namespace mobius::os

// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/pages.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/status.h"
#include "os/file/held_descriptor.h"
#include "os/memory/accessible_memory.h"
#include "os/memory/mappings.h"
#include "os/process/process.h"

namespace mobius::os {
namespace {

using base::fail_errno;

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// Whether any of these bytes belong to the stack of the calling thread.
bool is_own_stack(uintptr_t start, size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  const auto stack = reinterpret_cast<uintptr_t>(lowest);
  return known && start < stack + size && stack < start + bytes;
}

// PROCMAP_QUERY of Linux 6.11, for older headers: the kernel's description of one mapping, without
// reading its pages.
struct MapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
constexpr uint64_t kMapReadable = 1;
constexpr uint64_t kMapWritable = 2;

// Whether memory of this process can be accessed. kPermitted: as far as permissions tell, but a
// mapping of a file may be longer than the file. kUnknown if the kernel cannot tell.
enum class Access { kAllowed, kRefused, kPermitted, kUnknown };

// `around` gets the queried mappings, if all of them can be accessed.
Access ask_mappings(uintptr_t start, uintptr_t end, bool write, AddressRange* around) {
  // A forked process shares its parent's open file, so the static variable avoids asking for the
  // process id each time.
  static std::atomic<bool> is_forked = false;
  static const HeldDescriptor held([] {
    const int file = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    const int error = pthread_atfork(nullptr, nullptr, [] { is_forked.store(true); });
    return error == 0 ? file : -1;
  }());
  const int maps = held.get();
  if (maps < 0 || is_forked.load(std::memory_order_relaxed)) return Access::kUnknown;
  uintptr_t lowest = UINTPTR_MAX;
  bool has_files = false;
  while (start < end) {
    MapQuery query{};
    query.size = sizeof query;
    query.query_addr = start;
    if (ioctl(maps, _IOWR('f', 17, MapQuery), &query) != 0) {
      return errno == ENOENT ? Access::kRefused : Access::kUnknown;
    }
    if ((query.vma_flags & (write ? kMapWritable : kMapReadable)) == 0) return Access::kRefused;
    has_files |= query.inode != 0;
    lowest = std::min<uintptr_t>(lowest, query.vma_start);
    start = query.vma_end;
  }
  if (has_files) return Access::kPermitted;
  *around = {lowest, start};
  return Access::kAllowed;
}

// Values of MADV_POPULATE_READ and _WRITE, for older headers.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

// Whether pages can be allocated; if so they are. `around` gets them. `permitted`: the permissions
// are known to allow it.
bool is_made(uintptr_t address, size_t bytes, bool write, bool permitted, AddressRange* around) {
  const uintptr_t start = page_start(address);
  *around = {start, page_start(address + bytes - 1) + page_bytes()};
  static const bool is_known = madvise(nullptr, 0, kPopulateRead) == 0;
  if (!is_known) return true;
  const int error = errno;
  int result = 0;
  do {
    result =
        madvise(pointer(start), address + bytes - start, write ? kPopulateWrite : kPopulateRead);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  // Memory of a device has no pages to allocate; the kernel then answers as without permission.
  const bool is_unclear = result != 0 && errno == EINVAL;
  errno = error;
  if (!is_unclear) return result == 0;
  return permitted || AccessibleMemory(write).first_outside(address, bytes) == 0;
}

}  // namespace

uintptr_t page_bytes() {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uintptr_t page_start(uintptr_t address) { return address & ~(page_bytes() - 1); }

bool is_accessible(uintptr_t address, size_t bytes, bool write) {
  AddressRange around{};
  // For one page, madvise() tells as much in the same time, and allocates the page.
  return page_start(address) == page_start(address + bytes - 1)
             ? is_made(address, bytes, write, false, &around)
             : is_accessible(address, bytes, write, &around);
}

bool is_accessible(uintptr_t address, size_t bytes, bool write, AddressRange* around,
                   bool may_make) {
  const int error = errno;
  const Access access = ask_mappings(page_start(address), address + bytes, write, around);
  errno = error;
  if (access == Access::kAllowed || access == Access::kRefused) return access == Access::kAllowed;
  return may_make && is_made(address, bytes, write, access == Access::kPermitted, around);
}

namespace {

// Mappings of hugetlbfs, also without a file. Transparent huge pages are none.
bool is_of_huge_pages(const Mapping& mapping) {
  constexpr long kHugetlbfs = 0x958458f6;
  int name = 0;
  if (std::sscanf(mapping.line, "%*s %*s %*s %*s %*s %n", &name) < 0 || name == 0) return false;
  std::string path = mapping.line + name;
  if (!path.empty() && path.back() == '\n') path.pop_back();
  struct statfs about{};
  return path.starts_with("/anon_hugepage") ||
         (path.starts_with('/') && statfs(path.c_str(), &about) == 0 && about.f_type == kHugetlbfs);
}

}  // namespace

const char* why_not_shareable(uintptr_t start, size_t bytes) {
  constexpr const char* kStack = "it is a stack";
  if (is_own_stack(start, bytes)) return kStack;
  const char* reason = nullptr;
  uintptr_t checked = start;  // everything below is checked
  const bool known = for_each_mapping([&](const Mapping& mapping) {
    if (mapping.end <= checked) return true;
    if (mapping.first > checked) return false;  // a hole
    const char* access = mapping.access;
    if (access[3] != 'p') {
      reason = "it is shared memory already";
    } else if (access[0] != 'r' || access[1] != 'w' || access[2] != '-') {
      reason = "it is not readable, writable and non-executable";
    } else if (std::strstr(mapping.line, "[stack") != nullptr) {
      reason = kStack;
    } else if (is_of_huge_pages(mapping)) {
      reason = "it has huge pages of its own (MAP_HUGETLB), which cannot move";
    }
    checked = mapping.end;
    return reason == nullptr && checked < start + bytes;
  });
  if (!known) return "/proc/thread-self/maps, which describes it, cannot be read";
  if (reason == nullptr && checked < start + bytes) reason = "not all of it is mapped";
  return reason;
}

namespace {

// Whole pages of a heap contain bytes that AddressSanitizer forbids to touch, and memcpy() would
// check.
[[gnu::no_sanitize("address", "thread")]] void copy_pages(void* to, const void* from,
                                                          size_t bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  auto* target = static_cast<volatile uint64_t*>(to);
  const auto* source = static_cast<const volatile uint64_t*>(from);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) target[i] = source[i];
#else
  std::memcpy(to, from, bytes);
#endif
}

// Calls `copy(first, bytes)` for ranges of anonymous pages, in order, that contain everything that
// is not zero: all pages except those that the kernel reports as never touched.
template <typename Copy>
void for_used_pages(uintptr_t start, size_t bytes, Copy copy) {
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  constexpr uint64_t kSwapped = uint64_t{1} << 62;
  constexpr size_t kEntries = 4096;
  const int map = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  const size_t page = page_bytes();
  uint64_t entries[kEntries];
  for (size_t done = 0; done < bytes;) {
    const size_t wanted = std::min(kEntries, (bytes - done) / page);
    const auto at = static_cast<off_t>((start + done) / page * sizeof *entries);
    const ssize_t got = map < 0 ? -1 : pread(map, entries, wanted * sizeof *entries, at);
    if (got <= 0) {
      copy(start + done, bytes - done);
      break;
    }
    const size_t count = static_cast<size_t>(got) / sizeof *entries;
    const auto is_used = [&](size_t i) { return (entries[i] & (kPresent | kSwapped)) != 0; };
    for (size_t i = 0; i < count;) {
      size_t end = i + 1;
      while (end < count && is_used(end) == is_used(i)) ++end;
      if (is_used(i)) copy(start + done + i * page, (end - i) * page);
      i = end;
    }
    done += count * page;
  }
  if (map >= 0) close(map);
}

// The same for pages of a memfd: the pages that it has. Offsets from the start.
template <typename Copy>
void for_used_pages(SharedPlace place, size_t bytes, Copy copy) {
  const auto first = static_cast<off_t>(place.offset);
  const off_t last = first + static_cast<off_t>(bytes);
  for (off_t at = first; at < last;) {
    const off_t data = lseek(place.descriptor, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // no more
    const off_t begin = data < 0 ? at : std::min(data, last);
    const off_t hole = data < 0 ? -1 : lseek(place.descriptor, begin, SEEK_HOLE);
    const off_t end = hole < 0 ? last : std::min(hole, last);
    if (end > begin) copy(static_cast<size_t>(begin - first), static_cast<size_t>(end - begin));
    at = std::max(end, begin);
  }
}

}  // namespace

// Other libraries replace the C library's mmap(), mremap() and munmap() with functions that call
// back (UCX and libfabric, for their caches of registered memory). While pages move, such a
// callback would change memory that was copied already, or wait for a thread that is stopped.
namespace raw {

void* map(void* address, size_t bytes, int flags, int descriptor, uint64_t offset) {
  const long got = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, flags, descriptor,
                           static_cast<long>(offset));
  return got == -1 ? MAP_FAILED : pointer(static_cast<uintptr_t>(got));
}

bool move_mapping(void* from, size_t bytes, uintptr_t to) {
  return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

void unmap(void* address, size_t bytes) { syscall(SYS_munmap, address, bytes); }

// Writes pages to an offset of a place that has none yet. The kernel gives the file each page with
// the contents in it: a copy through a mapping takes a page fault for each, which clears it first.
// Returns the error.
int write(SharedPlace place, size_t offset, uintptr_t from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const long got = syscall(SYS_pwrite64, place.descriptor, from + done, bytes - done,
                             static_cast<long>(place.offset + offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : ENOSPC;
    done += static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace raw

void announce_move(uintptr_t start, size_t bytes) {
  const int error = errno;
  // Changes nothing.
  static_cast<void>(mremap(pointer(start), bytes, bytes, 0));
  errno = error;
}

mob_status_t make_shared(uintptr_t start, size_t bytes, bool anonymous, SharedPlace place) {
  int error = 0;
  const auto copy_range = [&](uintptr_t first, size_t count) {
    if (error == 0) error = raw::write(place, first - start, first, count);
  };
  if (anonymous) {
    for_used_pages(start, bytes, copy_range);
  } else {
    copy_range(start, bytes);
  }
  if (error != 0) {
    return fail_errno(MOB_ERR_MEMORY, error, "copying %zu bytes at %p to shared memory failed",
                      bytes, pointer(start));
  }
  const void* got =
      raw::map(pointer(start), bytes, MAP_SHARED | MAP_FIXED, place.descriptor, place.offset);
  if (got != MAP_FAILED) return MOB_OK;
  return fail_errno(MOB_ERR_MEMORY, errno, "mapping %zu bytes of shared memory at %p failed", bytes,
                    pointer(start));
}

void map_used_pages(uintptr_t start, size_t bytes, SharedPlace place) {
  const int error = errno;
  for_used_pages(place, bytes, [&](size_t first, size_t count) {
    static_cast<void>(madvise(pointer(start + first), count, kPopulateRead));
  });
  errno = error;
}

mob_status_t make_private(uintptr_t start, size_t bytes, SharedPlace place) {
  void* copy = raw::map(nullptr, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copy == MAP_FAILED) {
    return fail_errno(MOB_ERR_MEMORY, errno, "no %zu bytes of private memory", bytes);
  }
  for_used_pages(place, bytes, [&](size_t first, size_t count) {
    unsigned char* to = static_cast<unsigned char*>(copy) + first;
    // All pages by one call instead of by a fault for each; kernels before 5.14 refuse it.
    static_cast<void>(madvise(to, count, kPopulateWrite));
    copy_pages(to, pointer(start + first), count);
  });
  // Replaces the shared pages in one step: the range is never unmapped.
  if (raw::move_mapping(copy, bytes, start)) return MOB_OK;
  const int error = errno;
  raw::unmap(copy, bytes);
  return fail_errno(MOB_ERR_MEMORY, error, "moving %zu bytes of private memory to %p failed", bytes,
                    pointer(start));
}

std::vector<AddressRange> still_shared(uintptr_t start, size_t bytes, SharedPlace place) {
  const uintptr_t end = start + bytes;
  std::vector<AddressRange> found;
  struct stat file{};
  const bool known =
      fstat(place.descriptor, &file) == 0 && for_each_mapping([&](const Mapping& it) {
        if (it.end <= start) return true;
        if (it.first >= end) return false;
        if (it.access[3] == 's' && is_mapping_of(it.line, file)) {
          found.push_back({std::max(it.first, start), std::min(it.end, end)});
        }
        return true;
      });
  if (!known) found.assign(1, {start, end});
  return found;
}

mob_status_t make_private(std::span<const AddressRange> parts, uintptr_t start, SharedPlace place) {
  const auto place_of = [&](const AddressRange& part) {
    return SharedPlace{place.descriptor, place.offset + (part.start - start)};
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const AddressRange& part = parts[i];
    const mob_status_t status = make_private(part.start, part.end - part.start, place_of(part));
    if (status == MOB_OK) continue;
    // The shared pages still hold the contents.
    for (const AddressRange& before : parts.first(i)) {
      raw::map(pointer(before.start), before.end - before.start, MAP_SHARED | MAP_FIXED,
               place.descriptor, place_of(before).offset);
    }
    return status;
  }
  return MOB_OK;
}

bool map_where_free(uintptr_t start, size_t bytes, SharedPlace place) {
  // malloc() extends the heap at its end, and the first thread's stack grows down from where the
  // kernel has put these random bytes.
  constexpr uintptr_t kRoom = uintptr_t{16} << 30;
  const auto heap = reinterpret_cast<uintptr_t>(sbrk(0));
  const uintptr_t stack = getauxval(AT_RANDOM);
  const auto overlaps = [&](uintptr_t first) {
    return start < first + kRoom && first < start + bytes;
  };
  if (overlaps(heap) || overlaps(stack - kRoom)) return false;
  const int error = errno;
  void* got = mmap(pointer(start), bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, place.descriptor,
                   static_cast<off_t>(place.offset));
  // Kernels before 4.17 treat the address as a hint.
  if (got != MAP_FAILED && got != pointer(start)) {
    munmap(got, bytes);
    got = MAP_FAILED;
  }
  if (got != MAP_FAILED) madvise(got, bytes, MADV_DONTDUMP);
  errno = error;
  return got != MAP_FAILED;
}

void unmap(uintptr_t start, size_t bytes) { munmap(pointer(start), bytes); }

}  // namespace mobius::os

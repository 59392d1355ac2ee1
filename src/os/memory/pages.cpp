// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/pages.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/status.h"
#include "os/memory/accessible_memory.h"
#include "os/memory/map_query.h"
#include "os/memory/mappings.h"
#include "os/memory/page_map.h"
#include "os/memory/raw_pages.h"
#include "os/process/process.h"

namespace mobius::os {
namespace {

using base::fail_errno;

using raw::pointer;

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

// Whether memory of this process can be accessed. kPermitted: as far as permissions tell, but a
// mapping of a file may be longer than the file. kUnknown if the kernel cannot tell.
enum class Access { kAllowed, kRefused, kPermitted, kUnknown };

// `around` gets the queried mappings, if all of them can be accessed.
Access ask_mappings(uintptr_t start, uintptr_t end, bool write, AddressRange* around) {
  const MapQuery query;
  uintptr_t lowest = UINTPTR_MAX;
  bool has_files = false;
  while (start < end) {
    DescribedMapping mapping{};
    const MapAnswer answer = query.mapping_of(start, &mapping);
    if (answer != MapAnswer::kFound) {
      return answer == MapAnswer::kNothing ? Access::kRefused : Access::kUnknown;
    }
    if ((mapping.protection & (write ? PROT_WRITE : PROT_READ)) == 0) return Access::kRefused;
    has_files |= mapping.inode != 0;
    lowest = std::min(lowest, mapping.start);
    start = mapping.end;
  }
  if (has_files) return Access::kPermitted;
  *around = {lowest, start};
  return Access::kAllowed;
}

// Whether pages can be allocated; if so they are. `around` gets them. `permitted`: the permissions
// are known to allow it.
bool is_made(uintptr_t address, size_t bytes, bool write, bool permitted, AddressRange* around) {
  const uintptr_t start = page_start(address);
  *around = {start, page_start(address + bytes - 1) + page_bytes()};
  static const bool is_known = madvise(nullptr, 0, raw::kPopulateRead) == 0;
  if (!is_known) return true;
  const int error = errno;
  int result = 0;
  do {
    result = madvise(pointer(start), address + bytes - start,
                     write ? raw::kPopulateWrite : raw::kPopulateRead);
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

// Calls `copy(first, bytes)` for ranges of anonymous pages, in order, that contain everything that
// is not zero: all pages except those that the kernel reports as never touched.
template <typename Copy>
void for_used_pages(uintptr_t start, size_t bytes, Copy copy) {
  for_pages(
      start, bytes, [](uint64_t entry) { return (entry & (kPagePresent | kPageSwapped)) != 0; },
      copy);
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
    static_cast<void>(madvise(pointer(start + first), count, raw::kPopulateRead));
  });
  errno = error;
}

void map_pages(uintptr_t start, size_t bytes) {
  const int error = errno;
  static_cast<void>(madvise(pointer(start), bytes, raw::kPopulateRead));
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
    static_cast<void>(madvise(to, count, raw::kPopulateWrite));
    raw::copy(to, pointer(start + first), count);
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

// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/private_views.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"
#include "os/memory/map_query.h"
#include "os/memory/page_map.h"
#include "os/memory/raw_pages.h"

namespace mobius::os {
namespace {

using base::fail_errno;
using raw::pointer;

// For older headers.
constexpr unsigned kLockOnFault = 1;

bool is_of_file(const DescribedMapping& mapping, const struct stat& file) {
  return mapping.device == file.st_dev && mapping.inode == file.st_ino;
}

bool find_mapping(const MapQuery& query, uintptr_t address, DescribedMapping* mapping) {
  MapAnswer answer = query.mapping_of(address, mapping);
  if (answer == MapAnswer::kUnknown) {
    MapReader reader;
    do {
      answer = reader.next(mapping);
    } while (answer == MapAnswer::kFound && mapping->end <= address);
  }
  return answer == MapAnswer::kFound && mapping->start <= address;
}

// Whether the pages are mappings of their place, all shared or all private, which the program may
// read and write.
bool are_all_there(uintptr_t start, size_t bytes, SharedPlace place, bool is_shared) {
  struct stat file{};
  if (fstat(place.descriptor, &file) != 0) return false;
  const MapQuery query;
  for (uintptr_t at = start; at < start + bytes;) {
    DescribedMapping mapping{};
    if (!find_mapping(query, at, &mapping) || !is_of_file(mapping, file) ||
        mapping.is_shared != is_shared || mapping.protection != (PROT_READ | PROT_WRITE) ||
        mapping.offset + (at - mapping.start) != place.offset + (at - start)) {
      return false;
    }
    at = mapping.end;
  }
  return true;
}

// A mapping of a place that the program has.
struct Part {
  uintptr_t start;
  size_t bytes;
  int protection;
  bool is_shared;
  uint64_t offset;
};

// Finds a view of a place anywhere, or a shared mapping of it among `shared`.
MapAnswer find_part(const struct stat& file, SharedPlace place, size_t bytes, AddressRange shared,
                    Part* part) {
  MapReader reader;
  DescribedMapping it{};
  MapAnswer answer = MapAnswer::kFound;
  while ((answer = reader.next(&it)) == MapAnswer::kFound) {
    if (!is_of_file(it, file)) continue;
    const uint64_t offset = std::max(it.offset, place.offset);
    const uint64_t last = std::min(it.offset + (it.end - it.start), place.offset + bytes);
    if (offset >= last) continue;
    *part = {it.start + (offset - it.offset), last - offset, it.protection, it.is_shared, offset};
    if (!it.is_shared || (part->start >= shared.start && part->start < shared.end)) break;
  }
  return answer;
}

// Returns the error.
int copy_part(const Part& part) {
  void* copy = raw::map(nullptr, part.bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copy == MAP_FAILED) return errno;
  const bool is_hidden = (part.protection & PROT_READ) == 0;
  bool is_done = !is_hidden || raw::protect(pointer(part.start), part.bytes, PROT_READ);
  if (is_done) {
    // All pages by one call instead of by a fault for each; kernels before 5.14 refuse it.
    static_cast<void>(raw::advise(copy, part.bytes, raw::kPopulateWrite));
    raw::copy(copy, pointer(part.start), part.bytes);
    is_done = (part.protection == (PROT_READ | PROT_WRITE) ||
               raw::protect(copy, part.bytes, part.protection)) &&
              raw::move_mapping(copy, part.bytes, part.start);
  }
  if (is_done) return 0;
  const int error = errno;
  if (is_hidden) raw::protect(pointer(part.start), part.bytes, part.protection);
  raw::unmap(copy, part.bytes);
  return error;
}

mob_status_t copy_parts(size_t bytes, SharedPlace place, AddressRange shared) {
  struct stat file{};
  int error = fstat(place.descriptor, &file) == 0 ? 0 : errno;
  while (error == 0) {
    Part part{};
    const MapAnswer answer = find_part(file, place, bytes, shared, &part);
    if (answer == MapAnswer::kNothing) return MOB_OK;
    if (answer == MapAnswer::kUnknown) {
      error = ENOTSUP;
    } else if (part.is_shared && part.protection == (PROT_READ | PROT_WRITE)) {
      // Knows which pages have contents.
      const SharedPlace of_part{place.descriptor, part.offset};
      if (const mob_status_t status = make_private(part.start, part.bytes, of_part)) return status;
    } else {
      error = copy_part(part);
    }
  }
  return fail_errno(MOB_ERR_MEMORY, error,
                    "copying the program's pages from %zu bytes of shared memory failed", bytes);
}

}  // namespace

bool make_view(uintptr_t start, size_t bytes, SharedPlace place) {
  const int error = errno;
  bool is_made = false;
  if (bytes > page_bytes() && are_all_there(start, bytes, place, true)) {
    // Made elsewhere, so that the pages change in one step and only when all is done.
    void* view = raw::map(nullptr, bytes, MAP_PRIVATE, place.descriptor, place.offset);
    if (view != MAP_FAILED) {
      is_made = syscall(SYS_mlock2, view, bytes, kLockOnFault) == 0 &&
                raw::move_mapping(view, bytes, start);
      if (!is_made) raw::unmap(view, bytes);
    }
    // The last page differs from the rest by this, so that it is a mapping of its own. Fails if the
    // process may have no more mappings. What realloc() lets grow then is private all the same, and
    // its new part undefined as ever.
    if (is_made) {
      raw::advise(pointer(start + bytes - page_bytes()), page_bytes(), MADV_RANDOM);
    }
  }
  errno = error;
  return is_made;
}

bool share_view(uintptr_t start, size_t bytes, SharedPlace place) {
  if (!are_all_there(start, bytes, place, false)) return false;
  // Pages that are the file's are as they were.
  int error = 0;
  for_pages(
      start, bytes,
      [](uint64_t page) {
        return (page & (kPagePresent | kPageSwapped)) != 0 && (page & kPageOfFile) == 0;
      },
      [&](uintptr_t first, size_t count) {
        if (error == 0) error = raw::write(place, first - start, first, count);
      });
  return error == 0 && raw::map(pointer(start), bytes, MAP_SHARED | MAP_FIXED, place.descriptor,
                                place.offset) != MAP_FAILED;
}

mob_status_t end_views(SharedPlace place, size_t bytes) { return copy_parts(bytes, place, {}); }

mob_status_t leave_place(uintptr_t start, size_t bytes, SharedPlace place) {
  return copy_parts(bytes, place, {start, start + bytes});
}

}  // namespace mobius::os

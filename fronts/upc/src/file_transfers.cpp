// SPDX-License-Identifier: BSD-3-Clause

// Transfers of parallel files. Shared memory goes through a buffer of the caller. With the common
// pointer, each thread moves a slice of the bytes.

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <upc.h>

#include <algorithm>

#include "collectives.h"
#include "files.h"

namespace mobius::upc {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

enum class Way { kRead, kWrite };

// Moves bytes between a file and private memory. Returns their number; -1: an error, with errno.
upc_off_t move(const File& file, Way way, char* memory, size_t bytes, upc_off_t place) {
  size_t done = 0;
  while (done < bytes) {
    const auto at = place + static_cast<upc_off_t>(done);
    const ssize_t moved = way == Way::kRead
                              ? pread(file.descriptor, memory + done, bytes - done, at)
                              : pwrite(file.descriptor, memory + done, bytes - done, at);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return done != 0 ? static_cast<upc_off_t>(done) : -1;
    if (moved == 0) break;
    done += static_cast<size_t>(moved);
  }
  return static_cast<upc_off_t>(done);
}

// Shared memory in blocks of `block` bytes; 0: indefinite.
class SharedBytes {
 public:
  SharedBytes(mob_upc_ptr_t start, uint64_t block, uint64_t phase)
      : start_(start), block_(block), phase_(phase) {}

  // Calls act(pointer, bytes, position) for the pieces of [from, from + bytes).
  template <typename Act>
  void each(uint64_t from, size_t bytes, Act&& act) const {
    for (size_t done = 0; done < bytes;) {
      const uint64_t position = from + done;
      const size_t left = bytes - done;
      const size_t length = block_ == 0 ? left : std::min<size_t>(left, in_block(position));
      act(at(position), length, done);
      done += length;
    }
  }

 private:
  uint64_t in_block(uint64_t position) const { return block_ - (phase_ + position) % block_; }
  mob_upc_ptr_t at(uint64_t position) const {
    if (block_ == 0) return mob_upc_member(start_, position);
    const auto all = static_cast<uint64_t>(threads());
    const uint64_t whole = phase_ + position;
    const uint64_t thread = start_.thread + whole / block_;
    return mob_upc_pointer(start_.offset - phase_ + thread / all * block_ + whole % block_,
                           static_cast<uint32_t>(thread % all), 0);
  }

  mob_upc_ptr_t start_;
  uint64_t block_;
  uint64_t phase_;
};

// Moves bytes [from, from + bytes) of shared memory and those of the file behind `place` + from.
upc_off_t move(const File& file, Way way, const SharedBytes& memory, uint64_t from, uint64_t bytes,
               upc_off_t place) {
  std::vector<char> buffer(std::min<uint64_t>(bytes, kBufferBytes));
  upc_off_t done = 0;
  while (static_cast<uint64_t>(done) < bytes) {
    const uint64_t at = from + static_cast<uint64_t>(done);
    const size_t length = std::min<uint64_t>(buffer.size(), bytes - static_cast<uint64_t>(done));
    const upc_off_t there = place + static_cast<upc_off_t>(at);
    if (way == Way::kWrite) {
      memory.each(at, length, [&](mob_upc_ptr_t p, size_t count, size_t position) {
        upc_memget(&buffer[position], p, count);
      });
    }
    const upc_off_t moved = move(file, way, buffer.data(), length, there);
    if (moved < 0) return done != 0 ? done : -1;
    if (way == Way::kRead && moved > 0) {
      memory.each(at, static_cast<size_t>(moved),
                  [&](mob_upc_ptr_t p, size_t count, size_t position) {
                    upc_memput(p, &buffer[position], count);
                  });
    }
    done += moved;
    if (static_cast<size_t>(moved) < length) break;
  }
  return done;
}

size_t product(size_t a, size_t b, const char* call) {
  size_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) die(call, "%zu elements of %zu bytes overflow", b, a);
  return result;
}

upc_off_t move_local(mob_upc_ptr_t fd, Way way, void* buffer, size_t size, size_t nmemb,
                     upc_flag_t flags, const char* call) {
  enter(flags, call);
  File& file = find_file(fd, call);
  if (file.is_common()) {
    die(call,
        "the file has a common pointer, but private buffers need individual ones: use "
        "upc_all_fcntl(fd, UPC_SET_INDIVIDUAL_FP, NULL) before");
  }
  const size_t bytes = buffer != nullptr ? product(size, nmemb, call) : 0;
  const upc_off_t moved = move(file, way, static_cast<char*>(buffer), bytes, file.place);
  const int error = errno;
  if (moved > 0) file.place += moved;
  leave(flags, call);
  errno = error;
  return moved;
}

// All threads move one array: each a slice of it.
upc_off_t move_together(File* file, Way way, const SharedBytes& memory, size_t bytes,
                        const char* call) {
  int64_t all = static_cast<int64_t>(bytes);
  if (way == Way::kRead) {
    struct stat found = {};
    if (mythread() == 0) {
      if (fstat(file->descriptor, &found) != 0) found.st_size = 0;
      all = std::clamp<int64_t>(found.st_size - file->place, 0, all);
    }
    check(mob_broadcast(MOB_TEAM_WORLD, 0, &all, sizeof all), call);
  }
  const auto slice = [&](int thread) {
    return static_cast<uint64_t>(static_cast<mob_upc_uint128_t_>(all) *
                                 static_cast<unsigned>(thread) / static_cast<unsigned>(threads()));
  };
  const uint64_t from = slice(mythread());
  const uint64_t mine = slice(mythread() + 1) - from;
  upc_off_t moved = mine != 0 ? move(*file, way, memory, from, mine, file->place) : 0;
  if (moved >= 0 && static_cast<uint64_t>(moved) < mine) {
    moved = -1;
    errno = EIO;
  }
  if (common_outcome(moved < 0 ? -1 : 0, call) != 0) return -1;
  file->place += all;
  return all;
}

upc_off_t move_shared(mob_upc_ptr_t fd, Way way, mob_upc_ptr_t buffer, size_t blocksize,
                      size_t size, size_t nmemb, upc_flag_t flags, const char* call) {
  enter(flags, call);
  File& file = find_file(fd, call);
  const size_t bytes = mob_upc_is_null(buffer) ? 0 : product(size, nmemb, call);
  if (bytes != 0) check_pointer(buffer, call, "buffer");
  const uint64_t phase = blocksize > 1 ? uint64_t{buffer.phase} * size : 0;
  const SharedBytes memory(buffer, product(blocksize, size, call), phase);
  upc_off_t moved = 0;
  if (file.is_common()) {
    moved = move_together(&file, way, memory, bytes, call);
  } else {
    if (bytes != 0) moved = move(file, way, memory, 0, bytes, file.place);
    if (moved > 0) file.place += moved;
  }
  const int error = errno;
  leave(flags, call);
  errno = error;
  return moved;
}

// The pieces of memory take the bytes of the pieces of the file, in order.
template <typename Length, typename Move>
upc_off_t move_list(size_t entries, Length&& length_of, size_t filevec_entries,
                    upc_filevec const* filevec, const char* call, Move&& move_piece) {
  upc_off_t all = 0;
  size_t i = 0;
  size_t k = 0;
  size_t done_memory = 0;
  size_t done_file = 0;
  for (;;) {
    while (i < entries && done_memory == length_of(i)) ++i, done_memory = 0;
    while (k < filevec_entries && done_file == filevec[k].len) ++k, done_file = 0;
    if (i == entries || k == filevec_entries) break;
    const size_t bytes = std::min(length_of(i) - done_memory, filevec[k].len - done_file);
    const upc_off_t moved =
        move_piece(i, done_memory, bytes, filevec[k].offset + static_cast<upc_off_t>(done_file));
    if (moved < 0) return all != 0 ? all : -1;
    all += moved;
    if (static_cast<size_t>(moved) < bytes) return all;
    done_memory += bytes;
    done_file += bytes;
  }
  if (i != entries || k != filevec_entries) {
    die(call, "the lists of memory and of the file have different numbers of bytes");
  }
  return all;
}

upc_off_t move_local_list(mob_upc_ptr_t fd, Way way, size_t entries, upc_local_memvec const* memvec,
                          size_t filevec_entries, upc_filevec const* filevec, upc_flag_t flags,
                          const char* call) {
  enter(flags, call);
  const File& file = find_file(fd, call);
  const upc_off_t moved = move_list(
      entries, [&](size_t i) { return memvec[i].len; }, filevec_entries, filevec, call,
      [&](size_t i, size_t from, size_t bytes, upc_off_t place) {
        return move(file, way, static_cast<char*>(memvec[i].baseaddr) + from, bytes, place);
      });
  const int error = errno;
  leave(flags, call);
  errno = error;
  return moved;
}

upc_off_t move_shared_list(mob_upc_ptr_t fd, Way way, size_t entries,
                           upc_shared_memvec const* memvec, size_t filevec_entries,
                           upc_filevec const* filevec, upc_flag_t flags, const char* call) {
  enter(flags, call);
  const File& file = find_file(fd, call);
  const upc_off_t moved = move_list(
      entries, [&](size_t i) { return memvec[i].len; }, filevec_entries, filevec, call,
      [&](size_t i, size_t from, size_t bytes, upc_off_t place) {
        const mob_upc_ptr_t start = memvec[i].baseaddr;
        check_pointer(start, call, "baseaddr");
        const SharedBytes memory(start, memvec[i].blocksize,
                                 memvec[i].blocksize > 1 ? start.phase : 0);
        return move(file, way, memory, from, bytes, place - static_cast<upc_off_t>(from));
      });
  const int error = errno;
  leave(flags, call);
  errno = error;
  return moved;
}

// Does a transfer. With UPC_ASYNC it is done at once as well; upc_all_fwait_async() gives its
// result.
template <typename Transfer>
upc_off_t transfer(mob_upc_ptr_t fd, upc_flag_t flags, const char* call, Transfer&& move_all) {
  if ((flags & UPC_ASYNC) == 0) return move_all();
  File& file = find_file(fd, call);
  if (file.has_async) {
    die(call, "the file has a transfer that was started: upc_all_fwait_async() comes before");
  }
  file.async_result = move_all();
  file.async_error = errno;
  file.has_async = true;
  return 0;
}

upc_off_t finish(mob_upc_ptr_t fd, const char* call) {
  File& file = find_file(fd, call);
  if (!file.has_async) {
    errno = EINVAL;
    return -1;
  }
  file.has_async = false;
  errno = file.async_error;
  return file.async_result;
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

// Each call, and its form of UPC 1.2, whose name ends with _async.
#define DEFINE_LOCAL(name, way)                                                                    \
  upc_off_t name(mob_upc_ptr_t fd, void* buffer, size_t size, size_t nmemb, upc_flag_t flags) {    \
    return transfer(fd, flags, #name,                                                              \
                    [&] { return move_local(fd, way, buffer, size, nmemb, flags, #name); });       \
  }                                                                                                \
  void name##_async(mob_upc_ptr_t fd, void* buffer, size_t size, size_t nmemb, upc_flag_t flags) { \
    static_cast<void>(name(fd, buffer, size, nmemb, flags | UPC_ASYNC));                           \
  }
#define DEFINE_SHARED(name, way)                                                           \
  upc_off_t name(mob_upc_ptr_t fd, mob_upc_ptr_t buffer, size_t blocksize, size_t size,    \
                 size_t nmemb, upc_flag_t flags) {                                         \
    return transfer(fd, flags, #name, [&] {                                                \
      return move_shared(fd, way, buffer, blocksize, size, nmemb, flags, #name);           \
    });                                                                                    \
  }                                                                                        \
  void name##_async(mob_upc_ptr_t fd, mob_upc_ptr_t buffer, size_t blocksize, size_t size, \
                    size_t nmemb, upc_flag_t flags) {                                      \
    static_cast<void>(name(fd, buffer, blocksize, size, nmemb, flags | UPC_ASYNC));        \
  }
#define DEFINE_LIST(name, way, Memory, move_them)                                                \
  upc_off_t name(mob_upc_ptr_t fd, size_t memvec_entries, Memory const* memvec,                  \
                 size_t filevec_entries, upc_filevec const* filevec, upc_flag_t flags) {         \
    return transfer(fd, flags, #name, [&] {                                                      \
      return move_them(fd, way, memvec_entries, memvec, filevec_entries, filevec, flags, #name); \
    });                                                                                          \
  }                                                                                              \
  void name##_async(mob_upc_ptr_t fd, size_t memvec_entries, Memory const* memvec,               \
                    size_t filevec_entries, upc_filevec const* filevec, upc_flag_t flags) {      \
    static_cast<void>(                                                                           \
        name(fd, memvec_entries, memvec, filevec_entries, filevec, flags | UPC_ASYNC));          \
  }

extern "C" {

DEFINE_LOCAL(upc_all_fread_local, Way::kRead)
DEFINE_LOCAL(upc_all_fwrite_local, Way::kWrite)
DEFINE_SHARED(upc_all_fread_shared, Way::kRead)
DEFINE_SHARED(upc_all_fwrite_shared, Way::kWrite)
DEFINE_LIST(upc_all_fread_list_local, Way::kRead, upc_local_memvec, move_local_list)
DEFINE_LIST(upc_all_fwrite_list_local, Way::kWrite, upc_local_memvec, move_local_list)
DEFINE_LIST(upc_all_fread_list_shared, Way::kRead, upc_shared_memvec, move_shared_list)
DEFINE_LIST(upc_all_fwrite_list_shared, Way::kWrite, upc_shared_memvec, move_shared_list)

upc_off_t upc_all_fwait_async(mob_upc_ptr_t fd) { return finish(fd, "upc_all_fwait_async"); }

upc_off_t upc_all_ftest_async(mob_upc_ptr_t fd, int* flag) {
  const upc_off_t result = finish(fd, "upc_all_ftest_async");
  if (flag != nullptr) *flag = 1;
  return result;
}

}  // extern "C"

// SPDX-License-Identifier: BSD-3-Clause

// Parallel files over those of POSIX. Every thread opens the file.

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <upc.h>

#include <cstring>
#include <memory>

#include "collectives.h"

namespace mobius::upc {
namespace {

// What a pointer to a file points to, in each thread's area.
struct Cell {
  uint64_t state;
  File* file;
};
constexpr uint64_t kLive = 0x6d6f6275706366d0;

int one_of(int flags, int mask) {
  const int chosen = flags & mask;
  return chosen != 0 && (chosen & (chosen - 1)) == 0 ? chosen : 0;
}

void check_open_flags(int flags, const char* call) {
  if (one_of(flags, UPC_RDONLY | UPC_WRONLY | UPC_RDWR) == 0) {
    die(call, "flags 0x%x must have one of UPC_RDONLY, UPC_WRONLY and UPC_RDWR", flags);
  }
  if (one_of(flags, UPC_INDIVIDUAL_FP | UPC_COMMON_FP) == 0) {
    die(call, "flags 0x%x must have one of UPC_INDIVIDUAL_FP and UPC_COMMON_FP", flags);
  }
}

int system_flags(int flags) {
  int result = O_CLOEXEC;
  if ((flags & UPC_RDONLY) != 0) result |= O_RDONLY;
  if ((flags & UPC_WRONLY) != 0) result |= O_WRONLY;
  if ((flags & UPC_RDWR) != 0) result |= O_RDWR;
  // The first thread makes the file.
  if (mythread() == 0) {
    if ((flags & UPC_CREATE) != 0) result |= O_CREAT;
    if ((flags & UPC_EXCL) != 0) result |= O_EXCL;
    if ((flags & UPC_TRUNC) != 0) result |= O_TRUNC;
  }
  return result;
}

upc_off_t size_of(const File& file) {
  struct stat found = {};
  return fstat(file.descriptor, &found) == 0 ? found.st_size : -1;
}

upc_off_t first_place(const File& file) {
  return (file.flags & UPC_APPEND) != 0 ? size_of(file) : 0;
}

void set_hint(File* file, const upc_hint& hint) {
  const std::string key = hint.key != nullptr ? hint.key : "";
  const std::string value = hint.value != nullptr ? hint.value : "";
  bool is_new = true;
  for (auto& each : file->hint_texts) {
    if (each.first != key) continue;
    each.second = value;
    is_new = false;
  }
  if (is_new) file->hint_texts.emplace_back(key, value);
  file->hints.clear();
  for (const auto& each : file->hint_texts) {
    file->hints.push_back({each.first.c_str(), each.second.c_str()});
  }
}

// A change of the file that one thread makes for all.
template <typename Act>
int by_first_thread(const char* call, Act&& act) {
  int outcome[] = {0, 0};
  library_barrier(call);
  if (mythread() == 0) {
    outcome[1] = act();
    outcome[0] = outcome[1] != 0 ? -1 : 0;
  }
  check(mob_broadcast(MOB_TEAM_WORLD, 0, outcome, sizeof outcome), call);
  if (outcome[0] != 0) errno = outcome[1];
  return outcome[0];
}

void set_pointer_kind(File* file, int kind) {
  file->flags = (file->flags & ~(UPC_COMMON_FP | UPC_INDIVIDUAL_FP)) | kind;
  file->place = first_place(*file);
}

}  // namespace

File& find_file(mob_upc_ptr_t fd, const char* call) {
  check_pointer(fd, call, "the file");
  auto* const cell = static_cast<Cell*>(mob_upc_local(fd.offset));
  if (fd.thread != 0 || fd.offset >= area_bytes() || cell->state != kLive) {
    die(call, "the pointer names no file of upc_all_fopen(), or a closed one");
  }
  return *cell->file;
}

int common_outcome(int result, const char* call) {
  int64_t worst = result < 0 ? errno : 0;
  check(mob_allreduce(MOB_TEAM_WORLD, MOB_MAX, MOB_INT64, &worst, &worst, 1), call);
  if (worst == 0) return 0;
  errno = static_cast<int>(worst);
  return -1;
}

}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

mob_upc_ptr_t upc_all_fopen(const char* fname, int flags, size_t numhints, upc_hint const* hints) {
  constexpr const char* kCall = "upc_all_fopen";
  check_started(kCall);
  check_open_flags(flags, kCall);
  if (fname == nullptr) die(kCall, "fname is null");
  auto file = std::make_unique<File>();
  file->name = fname;
  file->flags = flags;
  // The first thread opens before the others.
  if (mythread() == 0) file->descriptor = open(fname, system_flags(flags), 0666);
  int outcome = common_outcome(mythread() == 0 ? file->descriptor : 0, kCall);
  if (outcome == 0) {
    if (mythread() != 0) file->descriptor = open(fname, system_flags(flags), 0666);
    outcome = common_outcome(file->descriptor, kCall);
  }
  if (outcome != 0) {
    const int error = errno;
    if (file->descriptor >= 0) close(file->descriptor);
    errno = error;
    return mob_upc_null();
  }
  file->place = first_place(*file);
  for (size_t i = 0; i < numhints; ++i) set_hint(file.get(), hints[i]);
  const mob_upc_ptr_t made = upc_all_alloc(static_cast<size_t>(threads()), sizeof(Cell));
  if (mob_upc_is_null(made)) {
    close(file->descriptor);
    errno = ENOMEM;
    return made;
  }
  auto* const cell = static_cast<Cell*>(mob_upc_local(made.offset));
  *cell = {kLive, file.release()};
  return made;
}

int upc_all_fclose(mob_upc_ptr_t fd) {
  constexpr const char* kCall = "upc_all_fclose";
  const std::unique_ptr<File> file(&find_file(fd, kCall));
  static_cast<Cell*>(mob_upc_local(fd.offset))->state = 0;
  const int closed = common_outcome(close(file->descriptor), kCall);
  const int error = errno;
  if ((file->flags & UPC_DELETE_ON_CLOSE) != 0 && mythread() == 0) unlink(file->name.c_str());
  upc_all_free(fd);
  library_barrier(kCall);
  errno = error;
  return closed;
}

int upc_all_fsync(mob_upc_ptr_t fd) {
  constexpr const char* kCall = "upc_all_fsync";
  return common_outcome(fsync(find_file(fd, kCall).descriptor), kCall);
}

upc_off_t upc_all_fseek(mob_upc_ptr_t fd, upc_off_t offset, int origin) {
  constexpr const char* kCall = "upc_all_fseek";
  File& file = find_file(fd, kCall);
  upc_off_t from = 0;
  switch (origin) {
    case UPC_SEEK_SET:
      break;
    case UPC_SEEK_CUR:
      from = file.place;
      break;
    case UPC_SEEK_END:
      from = size_of(file);
      break;
    default:
      die(kCall, "origin is %d; it must be UPC_SEEK_SET, UPC_SEEK_CUR or UPC_SEEK_END", origin);
  }
  upc_off_t place = 0;
  if (__builtin_add_overflow(from, offset, &place) || place < 0) {
    errno = EINVAL;
    return -1;
  }
  file.place = place;
  return place;
}

int upc_all_fset_size(mob_upc_ptr_t fd, upc_off_t size) {
  constexpr const char* kCall = "upc_all_fset_size";
  const File& file = find_file(fd, kCall);
  return by_first_thread(kCall, [&] { return ftruncate(file.descriptor, size) == 0 ? 0 : errno; });
}

upc_off_t upc_all_fget_size(mob_upc_ptr_t fd) {
  constexpr const char* kCall = "upc_all_fget_size";
  const File& file = find_file(fd, kCall);
  library_barrier(kCall);
  return size_of(file);
}

int upc_all_fpreallocate(mob_upc_ptr_t fd, upc_off_t size) {
  constexpr const char* kCall = "upc_all_fpreallocate";
  const File& file = find_file(fd, kCall);
  return by_first_thread(kCall, [&] { return posix_fallocate(file.descriptor, 0, size); });
}

int upc_all_fcntl(mob_upc_ptr_t fd, int cmd, void* arg) {
  constexpr const char* kCall = "upc_all_fcntl";
  File& file = find_file(fd, kCall);
  if ((cmd & (UPC_GET_FN | UPC_GET_HINTS | UPC_SET_HINT)) != 0 && arg == nullptr) {
    die(kCall, "command 0x%x needs arg", cmd);
  }
  switch (cmd) {
    case UPC_GET_CA_SEMANTICS:
      return file.flags & UPC_STRONG_CA;
    case UPC_SET_WEAK_CA_SEMANTICS:
      file.flags &= ~UPC_STRONG_CA;
      return 0;
    case UPC_SET_STRONG_CA_SEMANTICS:
      file.flags |= UPC_STRONG_CA;
      return 0;
    case UPC_GET_FP:
      return file.flags & (UPC_COMMON_FP | UPC_INDIVIDUAL_FP);
    case UPC_SET_COMMON_FP:
      library_barrier(kCall);
      set_pointer_kind(&file, UPC_COMMON_FP);
      return 0;
    case UPC_SET_INDIVIDUAL_FP:
      library_barrier(kCall);
      set_pointer_kind(&file, UPC_INDIVIDUAL_FP);
      return 0;
    case UPC_GET_FL:
      return file.flags;
    case UPC_GET_FN:
      *static_cast<const char**>(arg) = file.name.c_str();
      return 0;
    case UPC_GET_HINTS:
      *static_cast<const upc_hint**>(arg) = file.hints.data();
      return static_cast<int>(file.hints.size());
    case UPC_SET_HINT:
      set_hint(&file, *static_cast<const upc_hint*>(arg));
      return 0;
    case UPC_ASYNC_OUTSTANDING:
      return file.has_async ? 1 : 0;
    default:
      errno = EINVAL;
      return -1;
  }
}

}  // extern "C"

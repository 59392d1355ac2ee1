// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cma/cma.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "transport/shm/copy.h"
#include "transport/shm/move.h"

namespace mobius::transport {
namespace {

// Pieces per system call. The kernel accepts 1024, but copies the list first, and more than some
// dozens gain little.
constexpr size_t kBatch = 128;

// Bytes per system call: the kernel silently stops at 2 GiB less a page.
constexpr size_t kMostBytes = size_t{1} << 30;

// Largest span that is read with its gaps: it stays in a second-level cache until its runs are
// copied out.
constexpr size_t kSpanBytes = size_t{256} << 10;

// The kernel finds a process's memory by any of its threads. If a process's first thread has ended,
// as when main() ends with pthread_exit(), the kernel finds the process no more by its own id, but
// by the id of another thread. This class remembers such ids, one for each of the last processes
// that needed one.
class Substitutes {
 public:
  // The id by which to address a process.
  pid_t of(pid_t pid) const {
    const uint64_t known = slot(pid).load(std::memory_order_relaxed);
    return known >> 32 == static_cast<uint64_t>(pid) ? static_cast<pid_t>(known & UINT32_MAX) : pid;
  }
  // After `failed` was not found: another thread of the process; 0 if there is none.
  pid_t find(pid_t pid, pid_t failed) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/%d/task", pid);
    const std::unique_ptr<DIR, int (*)(DIR*)> threads(opendir(path), &closedir);
    if (threads == nullptr) return 0;
    while (const dirent* entry = readdir(threads.get())) {
      const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (thread <= 0 || thread == pid || thread == failed) continue;
      // Signal 0 only tests: a thread that is ending has no memory any more.
      if (syscall(SYS_tgkill, pid, thread, 0) != 0) continue;
      slot(pid).store(static_cast<uint64_t>(pid) << 32 | static_cast<uint32_t>(thread),
                      std::memory_order_relaxed);
      return thread;
    }
    return 0;
  }

 private:
  static constexpr size_t kSlots = 64;
  std::atomic<uint64_t>& slot(pid_t pid) { return slots_[static_cast<size_t>(pid) % kSlots]; }
  const std::atomic<uint64_t>& slot(pid_t pid) const {
    return slots_[static_cast<size_t>(pid) % kSlots];
  }
  std::atomic<uint64_t> slots_[kSlots] = {};
};
constinit Substitutes substitutes;

// process_vm_writev() or process_vm_readv().
ssize_t copy_by_kernel(pid_t pid, const iovec* local, size_t locals, const iovec* remote,
                       size_t remotes, bool put) {
  const auto call = put ? &process_vm_writev : &process_vm_readv;
  pid_t id = substitutes.of(pid);
  ssize_t moved = call(id, local, locals, remote, remotes, 0);
  // Threads may end one after the other.
  for (int tries = 0; moved < 0 && errno == ESRCH && tries < 4; ++tries) {
    id = substitutes.find(pid, id);
    if (id == 0) {
      errno = ESRCH;
      break;
    }
    moved = call(id, local, locals, remote, remotes, 0);
  }
  return moved;
}

// Collects pieces and moves them, one batch per system call.
class Batch {
 public:
  Batch(pid_t pid, bool put) : pid_(pid), put_(put) {}

  int add(char* remote, char* local, size_t bytes) {
    for (; bytes > kMostBytes; bytes -= kMostBytes, remote += kMostBytes, local += kMostBytes) {
      if (const int error = add(remote, local, kMostBytes)) return error;
    }
    if (bytes == 0) return 0;
    if (bytes_ + bytes > kMostBytes) {
      if (const int error = flush()) return error;
    }
    bytes_ += bytes;
    extend(local_, &locals_, local, bytes);
    extend(remote_, &remotes_, remote, bytes);
    return locals_ == kBatch || remotes_ == kBatch ? flush() : 0;
  }

  int flush() {
    if (bytes_ == 0) return 0;
    const iovec* local = local_;
    const iovec* remote = remote_;
    const ssize_t moved = copy_by_kernel(pid_, local, locals_, remote, remotes_, put_);
    const int error = moved < 0 ? errno : static_cast<size_t>(moved) == bytes_ ? 0 : EFAULT;
    locals_ = remotes_ = bytes_ = 0;
    return error;
  }

 private:
  static void extend(iovec* list, size_t* count, char* at, size_t bytes) {
    if (*count > 0) {
      iovec& last = list[*count - 1];
      if (static_cast<char*>(last.iov_base) + last.iov_len == at) {
        last.iov_len += bytes;
        return;
      }
    }
    list[(*count)++] = {at, bytes};
  }

  const pid_t pid_;
  const bool put_;
  iovec local_[kBatch];
  iovec remote_[kBatch];
  size_t locals_ = 0;
  size_t remotes_ = 0;
  size_t bytes_ = 0;
};

// Whether it is faster to read the runs of a strided shape in spans, gaps included.
bool reads_spans(const Shape& shape) {
  if (shape.kind != MOB_STRIDED) return false;
  const ptrdiff_t stride = shape.remote_strides[0];
  return stride > 0 && static_cast<size_t>(stride) <= kSpanBytes / 4 &&
         static_cast<size_t>(stride) >= shape.run_bytes &&
         static_cast<size_t>(stride) - shape.run_bytes <= kWorthwhileGapBytes;
}

// Reads `count` runs from `remote` on, gaps included, and copies the runs out.
int get_span(pid_t pid, const Shape& shape, char* remote, char* local, size_t count, char* span) {
  const auto stride = static_cast<size_t>(shape.remote_strides[0]);
  const size_t bytes = (count - 1) * stride + shape.run_bytes;
  iovec here{span, bytes};
  iovec there{remote, bytes};
  const ssize_t got = copy_by_kernel(pid, &here, 1, &there, 1, false);
  if (got < 0) return errno;
  if (static_cast<size_t>(got) != bytes) return EFAULT;
  Shape rows;
  rows.kind = count > 1 ? MOB_STRIDED : MOB_CONTIGUOUS;
  rows.total_bytes = count * shape.run_bytes;
  rows.remote = span;
  rows.local = local;
  rows.run_bytes = shape.run_bytes;
  rows.dimensions = count > 1 ? 1 : 0;
  rows.counts[0] = count;
  rows.remote_strides[0] = shape.remote_strides[0];
  rows.local_strides[0] = shape.local_strides[0];
  move(rows, 0, false);
  return 0;
}

int get_spans(pid_t pid, const Shape& shape, char* span) {
  const auto stride = static_cast<size_t>(shape.remote_strides[0]);
  const size_t most = std::max<size_t>(1, (kSpanBytes - shape.run_bytes) / stride);
  int error = 0;
  for_each_row(shape, [&](char* remote, char* local) {
    for (size_t done = 0; done < shape.counts[0]; done += most) {
      const auto step = static_cast<ptrdiff_t>(done);
      error = get_span(pid, shape, remote + step * shape.remote_strides[0],
                       local + step * shape.local_strides[0],
                       std::min(most, shape.counts[0] - done), span);
      if (error != 0) return MOB_ERR_SYSTEM;
    }
    return MOB_OK;
  });
  return error;
}

int move_once(pid_t pid, char* remote, char* local, size_t bytes, bool put) {
  const iovec here{local, bytes};
  const iovec there{remote, bytes};
  const ssize_t moved = copy_by_kernel(pid, &here, 1, &there, 1, put);
  if (moved < 0) return errno;
  return static_cast<size_t>(moved) == bytes ? 0 : EFAULT;
}

// Whether the kernel's copy would be very slow because it uses string instructions
// (is_near_in_page()).
bool crawls(const char* remote, const char* local, size_t bytes, bool put) {
  return bytes >= kNearBytes && copy_tuning().slow_near_in_page &&
         is_near_in_page(put ? remote : local, put ? local : remote);
}

// Copies through a buffer that has the same offset in its page as `remote`.
int move_by_stage(pid_t pid, char* remote, char* local, size_t bytes, bool put) {
  constexpr size_t kStageBytes = size_t{64} << 10;
  constexpr size_t kPage = 4096;
  thread_local std::unique_ptr<char[]> memory;
  if (memory == nullptr) memory.reset(new (std::nothrow) char[kStageBytes + kPage]);
  if (memory == nullptr) return move_once(pid, remote, local, bytes, put);
  char* stage = memory.get() +
                ((reinterpret_cast<uintptr_t>(remote) - reinterpret_cast<uintptr_t>(memory.get())) &
                 (kPage - 1));
  for (size_t done = 0; done < bytes; done += kStageBytes) {
    const size_t part = std::min(kStageBytes, bytes - done);
    if (put) copy(stage, local + done, part);
    if (const int error = move_once(pid, remote + done, stage, part, put)) return error;
    if (!put) copy(local + done, stage, part);
  }
  return 0;
}

int move_pieces(pid_t pid, const Shape& shape, bool put) {
  Batch batch(pid, put);
  int error = 0;
  for_each_run(shape, [&](char* remote, char* local, size_t bytes) {
    error = crawls(remote, local, bytes, put) ? move_by_stage(pid, remote, local, bytes, put)
                                              : batch.add(remote, local, bytes);
    return error == 0 ? MOB_OK : MOB_ERR_SYSTEM;
  });
  return error != 0 ? error : batch.flush();
}

}  // namespace

void allow_attach() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

int cma_copy(pid_t pid, uintptr_t remote, const void* local, size_t bytes, bool put) {
  auto* here = static_cast<char*>(const_cast<void*>(local));
  auto* there = reinterpret_cast<char*>(remote);
  const auto move = crawls(there, here, bytes, put) ? &move_by_stage : &move_once;
  return move(pid, there, here, bytes, put);
}

int cma_put(pid_t pid, const Shape& shape) { return move_pieces(pid, shape, true); }

int cma_get(pid_t pid, const Shape& shape, bool may_read_gaps) {
  if (may_read_gaps && reads_spans(shape)) {
    // Kept for the thread's next get: allocating it costs as much as reading it.
    thread_local std::unique_ptr<char[]> span;
    if (span == nullptr) span.reset(new (std::nothrow) char[kSpanBytes]);
    if (span != nullptr) return get_spans(pid, shape, span.get());
  }
  return move_pieces(pid, shape, false);
}

size_t cma_put_pieces(const Shape& shape) {
  switch (shape.kind) {
    case MOB_CONTIGUOUS:
      return 1;
    case MOB_STRIDED: {
      size_t pieces = 1;
      for (int i = 0; i < shape.dimensions; ++i) pieces *= shape.counts[i];
      return pieces;
    }
    case MOB_PIECES:
      return shape.piece_count;
    case MOB_SPANS:
      return shape.remote_span_count;
  }
  return 0;
}

size_t cma_get_pieces(const Shape& shape, bool may_read_gaps) {
  if (!may_read_gaps || !reads_spans(shape)) return cma_put_pieces(shape);
  size_t pieces = 1 + (shape.highest - shape.lowest) / kSpanBytes;
  for (int i = 1; i < shape.dimensions; ++i) pieces *= shape.counts[i];
  return pieces;
}

}  // namespace mobius::transport

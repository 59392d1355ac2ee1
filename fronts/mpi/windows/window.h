// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A window that Möbius serves. Its handle is that of a real, empty window of the MPI, the carrier,
// which keeps the group, the name, the attributes, the error handler and the info of it. A window
// that Möbius does not serve is not known here, and its calls go to the MPI as they are.

#include <mobius/mobius.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "binding/abi.h"
#include "synchronisation/named_members.h"
#include "synchronisation/target_lock.h"
#include "windows/attached.h"
#include "windows/members.h"
#include "windows/program_memory.h"

namespace mobius::mpi {

// The locks of one member, in memory of its own that the others of the host reach.
struct alignas(64) MemberLocks {
  TargetLock access;   // of MPI_Win_lock()
  TargetLock updates;  // of accumulates that Möbius has no operation for
};

// One member as the calls of a window see it.
struct Target {
  char* base = nullptr;  // in the address space of its owner; null in a dynamic window
  uint64_t bytes = 0;    // from there on; all there is in a dynamic window
  uint64_t unit = 1;     // bytes per unit of displacement
  mob_rank_t owner = 0;  // rank in the job of the process whose memory it is …
  mob_rank_t rank = 0;   // … and of the member itself, who differs in shared windows
  bool is_here = false;  // on this host
  // Whether this process may access it: it has started an epoch to it, or locked it. Where it may
  // access all members, Window::all_open is set instead.
  std::atomic<uint8_t> open = 0;
  // Whether there is something for a flush. Puts, which within a host are stores that any full
  // fence completes …
  mutable std::atomic<uint8_t> has_stores = 0;
  mutable std::atomic<uint8_t> has_transfers = 0;  // … and all else
  // Accumulates fetch its memory, which the kernel copies, and put it back, under a lock: to wake
  // the process, so that it makes the change, would take longer.
  bool is_copied = false;
  uint8_t lock = 0;              // how it is locked by this process (LockKind)
  MemberLocks* locks = nullptr;  // null in windows on several hosts: Window::locked
};

// Whether an atomic instruction is a full fence.
#if defined(__x86_64__)
inline constexpr bool kAtomicsAreFences = true;
#else
inline constexpr bool kAtomicsAreFences = false;
#endif

// A value that several threads of a process may read and write without an order among them.
template <typename T>
class Relaxed {
 public:
  // Implicit, as it stands for the value.
  // NOLINTNEXTLINE(google-explicit-constructor, hicpp-explicit-conversions)
  constexpr Relaxed(T value) : value_(value) {}
  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor, hicpp-explicit-conversions)
  operator T() const { return value_.load(std::memory_order_relaxed); }
  void add(T more) { value_.fetch_add(more, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

enum LockKind : uint8_t { kUnlocked, kShared, kExclusive, kUnchecked };

// The access that the process has in a window, besides its locks.
enum class Access : uint8_t {
  kNone,
  kFence,      // between fences
  kFenceUsed,  // … and it did something
  kStarted,    // MPI_Win_start()
  kLockedAll,  // MPI_Win_lock_all()
};

struct Window {
  // Every operation reads the first fields of the window that it uses.
  std::atomic<uintptr_t> handle = 0;  // number_of() the carrier; 0: not in use
  std::atomic<Window*> next = nullptr;
  std::atomic<uint8_t> all_open = 0;
  bool is_dynamic = false;
  bool orders_accumulates = true;
  Relaxed<bool> is_changed = false;  // it has an info or attributes of the program: spares.h
  bool has_threads = false;          // two threads of a member may call the MPI at once
  int size = 0;
  int rank = 0;
  std::unique_ptr<Target[]> targets;

  MPI_Win carrier{};
  Relaxed<Access> access = Access::kNone;
  bool is_exposed = false;  // between MPI_Win_post() and its end
  Relaxed<int> locks = 0;   // of single targets
  bool is_lock_all_checked = true;
  NamedMembers started;  // of the last MPI_Win_start() …
  NamedMembers posted;   // … and MPI_Win_post()

  int flavor = 0;
  void* base = nullptr;  // what the attributes say
  MPI_Aint bytes = 0;
  int unit = 1;
  int model = 0;

  MemberLocks* own_locks = nullptr;
  Members* members = nullptr;
  mob_epoch_t epoch = nullptr;
  mob_access_t locked = nullptr;  // these two only in windows on several hosts
  mob_mutexes_t mutexes = nullptr;
  mob_mem_t memory = nullptr;  // of allocated windows
  std::vector<Exposure*> exposures;
  std::vector<std::pair<std::string, std::string>> info;
  bool has_handler = false;               // the program set one
  std::optional<std::string> first_name;  // before the program gave it one
  mob_schedule_t schedule = MOB_SCHEDULE_DEFAULT;
  Attached attached;  // to a dynamic window
};

// Finds windows by their handle: without a lock, as that is part of every operation.
class Windows {
 public:
  Window* find(uintptr_t handle) const {
    Window* window = slot(handle).load(std::memory_order_acquire);
    while (window != nullptr && window->handle.load(std::memory_order_relaxed) != handle)
        [[unlikely]] {
      window = window->next.load(std::memory_order_acquire);
    }
    return window;
  }

  // Returns a window that is not in use, which find() does not find before insert(). Windows are
  // never destroyed: a wrong program may be looking at one that was freed.
  Window* make();
  void insert(Window* window, MPI_Win carrier);
  // Takes the window out: find() no longer finds it by its handle.
  void remove(Window* window);
  void give_back(Window* window);
  // Any live window; null if there is none.
  Window* any();
  // As find(), for a handle that find() has not found: a window that another thread has freed and
  // made again meanwhile may have led it from one chain to another.
  Window* find_again(uintptr_t handle);

  // The program frees a window, served or not: from then on its handle is wrong, until a window
  // gets it again: one of insert(), or one of the MPI's own.
  void note_freed(MPI_Win win);
  void note_made(MPI_Win win);
  bool is_freed(MPI_Win win) const;

 private:
  static constexpr unsigned kBits = 10;
  // Addresses differ above the lowest bits, numbers in the lowest ones.
  static size_t hash(uintptr_t handle) {
    return ((handle ^ handle >> 7 ^ handle >> 17) & ((size_t{1} << kBits) - 1));
  }
  const std::atomic<Window*>& slot(uintptr_t handle) const { return slots_[hash(handle)]; }

  std::atomic<Window*>& slot(uintptr_t handle) { return slots_[hash(handle)]; }

  std::atomic<Window*> slots_[size_t{1} << kBits]{};
  std::atomic<bool> has_threads_ = false;  // a window had, Window::has_threads
  std::mutex mutex_;                       // guards changes of the chains, and what follows
  std::vector<Window*> free_;
  std::vector<Window*> live_;
  // The last one of each hash: a wrong program uses a handle soon after it has freed it.
  std::atomic<uintptr_t> freed_[size_t{1} << kBits]{};
};

extern constinit Windows windows;

// What look_again() finds for a handle that find() has not found.
struct Missed {
  Window* window;  // null: there is none
  MPI_Win own;     // the handle to call the MPI with then
};
[[gnu::cold]] Missed look_again(MPI_Win win);

// The window of a handle; null: the MPI's own. Then the handle becomes MPI_WIN_NULL if the program
// has freed the window: the MPI would take it where the carrier lives on, and may crash where not.
inline Window* find_window(MPI_Win& win) {
  Window* window = windows.find(number_of(win));
  if (window != nullptr) [[likely]] {
    return window;
  }
  const Missed missed = look_again(win);
  win = missed.own;
  return missed.window;
}

}  // namespace mobius::mpi

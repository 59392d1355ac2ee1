// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/notifications.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "os/memory/memfd.h"

namespace mobius::engine {
namespace {

using base::fail;

// Ends a wait when the sender can no longer notify.
class SenderWatch final : public os::Watch {
 public:
  SenderWatch(Peers& peers, const char* call, mob_rank_t from)
      : peers_(peers), call_(call), from_(from) {}

  mob_status_t look() override {
    if (!peers_.is_lost(from_)) return MOB_OK;
    return fail(MOB_ERR_PEER, "%s: rank %d %s", call_, from_, peers_.fate_of_lost(from_).c_str());
  }

 private:
  Peers& peers_;
  const char* call_;
  mob_rank_t from_;
};

}  // namespace

NotificationMemory::~NotificationMemory() {
  if (memory_ != nullptr) munmap(memory_, Notifications::kPages * Notifications::kPageBytes);
}

mob_status_t NotificationMemory::map(int segment, unsigned char** memory) {
  const std::lock_guard lock(mutex_);
  if (memory_ == nullptr) {
    constexpr size_t kBytes = Notifications::kPages * Notifications::kPageBytes;
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        segment, static_cast<off_t>(kNotificationsOffset));
    if (mapped == MAP_FAILED) {
      return base::fail_errno(MOB_ERR_MEMORY, errno, "mapping the words of notifications failed");
    }
    madvise(mapped, kBytes, MADV_DONTDUMP);
    memory_ = static_cast<unsigned char*>(mapped);
  }
  *memory = memory_;
  return MOB_OK;
}

void Notifications::close() {
  memory_.store(nullptr, std::memory_order_relaxed);
  shared_.reset();
}

mob_status_t Notifications::prepare(size_t page) {
  const int segment = services_.peers.host().segment();
  // Both processes of a pair reserve the page. That changes nothing if the page has memory already.
  mob_status_t status =
      os::memfd_reserve(segment, kNotificationsOffset + page * kPageBytes, kPageBytes);
  if (status != MOB_OK) return status;
  unsigned char* memory = nullptr;
  if ((status = shared_->map(segment, &memory))) return status;
  memory_.store(memory, std::memory_order_relaxed);
  // Release pairs with the acquire in find().
  ready_[page / 64].fetch_or(uint64_t{1} << page % 64, std::memory_order_release);
  return MOB_OK;
}

// The pairs of one receiver lie together.
mob_status_t Notifications::find(mob_rank_t from, mob_rank_t to, Pair** pair) {
  const size_t index = static_cast<size_t>(services_.peers.host_index(to)) * job::kMostLocalPeers +
                       static_cast<size_t>(services_.peers.host_index(from));
  const size_t page = index * sizeof(Pair) / kPageBytes;
  if ((ready_[page / 64].load(std::memory_order_acquire) >> page % 64 & 1) == 0) {
    if (const mob_status_t status = prepare(page)) return status;
  }
  *pair = reinterpret_cast<Pair*>(memory_.load(std::memory_order_relaxed)) + index;
  return MOB_OK;
}

Notifications::Pair& Notifications::from_elsewhere(mob_rank_t from) {
  const std::lock_guard lock(elsewhere_mutex_);
  return elsewhere_[from];
}

// The thread that serves the message also wakes the waiter.
void Notifications::notified(mob_rank_t from) {
  from_elsewhere(from).sent.fetch_add(1, std::memory_order_release);
}

mob_status_t Notifications::notify(mob_rank_t to) {
  if (!services_.peers.is_here(to)) [[unlikely]] {
    const mob_status_t status = services_.completion.complete_all("mob_notify");
    return status != MOB_OK ? status : services_.remote_objects.notify(to);
  }
  Pair* pair = nullptr;
  if (const mob_status_t status = find(services_.peers.rank(), to, &pair)) return status;
  if (const mob_status_t status = services_.completion.complete_all("mob_notify")) return status;
  // Release pairs with the acquire in wait(): the caller's puts are visible first. Sequential
  // consistency also orders the store before the load of the sleepers.
  pair->sent.fetch_add(1, std::memory_order_seq_cst);
  services_.waiter.ring_after_fence(to);
  return MOB_OK;
}

mob_status_t Notifications::wait(const char* call, mob_rank_t from, uint32_t* count) {
  Pair* pair = nullptr;
  if (!services_.peers.is_here(from)) [[unlikely]] {
    pair = &from_elsewhere(from);
  } else if (const mob_status_t status = find(from, services_.peers.rank(), &pair)) {
    return status;
  }
  uint32_t taken = pair->taken.load(std::memory_order_relaxed);
  // Threads that wait for the same sender take one notification each.
  const auto take = [&] {
    while (pair->sent.load(std::memory_order_acquire) != taken) {
      if (pair->taken.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  };
  if (!take()) {
    SenderWatch watch(services_.peers, call, from);
    if (const mob_status_t status = services_.waiter.wait_until(take, &watch)) return status;
  }
  *count = taken + 1;
  return MOB_OK;
}

}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Access and exposure epochs between the members of a team, by flags in shared memory.
//
// There is one pair of words for each ordered pair of members: one member alone writes it, the
// other alone reads it. They count, so that nobody has to reset them. What a process has to say to
// another, that it completed its access and that it posted again, lies in one cache line, which
// mostly travels once for both.
//
// Flags are set by plain stores, without waiting for them to arrive as a fence would: a process
// that goes on to its next epoch does not pay for the last one's cache misses. A waiter about to
// sleep makes up for it (os::Wakeup::kUnfenced).
//
// The words lie on the host of who reads them. A writer on another host has the reader's process
// set them: what it says comes in the order in which it said it.

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/remote/remote_objects.h"
#include "engine/sync/sync_services.h"
#include "engine/team/team_area.h"
#include "schedule/plan.h"

namespace mobius::engine {

class Epochs final : public RemoteObject {
 public:
  explicit Epochs(const SyncServices& services) : services_(services) {}

  Team& team() const { return *team_; }

  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(const SyncServices& services, Team& team, mob_status_t mine,
                           std::unique_ptr<Epochs>* epochs);
  // Collective. Inside an epoch, fails everywhere and frees nothing.
  mob_status_t release();

  // From the next start() on; none: as the allocation, or the job.
  mob_status_t set_schedule(std::optional<schedule::Policy> hint);

  mob_status_t post(std::span<const mob_rank_t> origins);
  mob_status_t start(std::span<const mob_rank_t> targets);
  mob_status_t complete();
  mob_status_t wait();
  mob_status_t test(int* done);
  mob_status_t fence();

  void told(mob_rank_t rank, mob_rank_t member, uint64_t index, uint32_t value) override;

  // What one member tells another; the place of the area a pair of members has.
  struct Words {
    std::atomic<uint32_t> posted;     // exposures that the writer posted to the reader
    std::atomic<uint32_t> completed;  // accesses to the reader that the writer completed
  };

 private:
  // What the caller knows of another member.
  struct Peer {
    Words* told = nullptr;  // by the caller, and who is rung then; null: on another host
    ProcessBlock::Doorbell* doorbell = nullptr;
    Words* heard = nullptr;  // by the caller
    uint32_t posts_sent = 0;
    uint32_t posts_taken = 0;
    uint32_t completes_sent = 0;
    uint32_t completes_taken = 0;
  };
  // One side of epochs. A thread may use the one while another uses the other.
  struct Side {
    std::vector<mob_rank_t> ranks;  // as they were named last; programs mostly name them again
    std::vector<mob_rank_t> group;  // the same as members
    std::vector<bool> is_named;     // of each member: in the list that is being checked
    bool open = false;
  };
  template <typename Lacks>
  class GroupWatch;

  Words& words(mob_rank_t writer, mob_rank_t reader) const;
  Peer& peer(mob_rank_t member) { return peers_[static_cast<size_t>(member)]; }
  mob_status_t tell(mob_rank_t member, std::atomic<uint32_t> Words::* word, uint32_t value);
  mob_status_t open(const char* call, const char* kind, Side& side,
                    std::span<const mob_rank_t> ranks);
  mob_status_t name(const char* call, Side& side, std::span<const mob_rank_t> ranks);
  bool has_completed(mob_rank_t member);
  bool all_completed(size_t* next);
  mob_status_t tell_completed(bool elsewhere);
  void end_exposure();

  const SyncServices& services_;
  TeamArea area_;
  Team* team_ = nullptr;
  size_t stride_ = 0;  // bytes from pair to pair
  std::vector<Peer> peers_;
  Side access_;
  Side exposure_;
  std::optional<schedule::Policy> hint_;
};

}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Access and exposure epochs between the members of a team, by flags in shared memory.
//
// Each ordered pair of members has a pair of words. Only the one member writes them and only the
// other reads them. The words count up, so nobody resets them. Both words of a pair, the completed
// accesses and the posted exposures, lie in one cache line, which usually moves once for both.
//
// Flags are set by plain stores without a fence. So a process that starts its next epoch does not
// pay for the cache misses of the last one. A waiter compensates for the missing fence before it
// sleeps (os::Wakeup::kUnfenced).
//
// The words lie on the reader's host. A writer on another host has the reader's process set them,
// in the order in which it sent them.

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
  // Collective. If a member is inside an epoch, it fails at all members and frees nothing.
  mob_status_t release();

  // Applies from the next start() on; without a policy that of the allocation or the job applies.
  mob_status_t set_schedule(std::optional<schedule::Policy> hint);

  mob_status_t post(std::span<const mob_rank_t> origins);
  mob_status_t start(std::span<const mob_rank_t> targets);
  mob_status_t complete();
  mob_status_t wait();
  mob_status_t test(int* done);
  mob_status_t fence();

  void told(mob_rank_t rank, mob_rank_t member, uint64_t index, uint32_t value) override;

  // One member's counts for another. The area of the team holds them for each ordered pair.
  struct Words {
    std::atomic<uint32_t> posted;     // exposures that the writer posted to the reader
    std::atomic<uint32_t> completed;  // accesses to the reader that the writer completed
  };

 private:
  // The caller's state for another member.
  struct Peer {
    // Written by the caller, which then rings the doorbell; null if the member is on another host.
    Words* told = nullptr;
    ProcessBlock::Doorbell* doorbell = nullptr;
    Words* heard = nullptr;  // read by the caller
    uint32_t posts_sent = 0;
    uint32_t posts_taken = 0;
    uint32_t completes_sent = 0;
    uint32_t completes_taken = 0;
  };
  // One side of epochs. Different threads may use the two sides at the same time.
  struct Side {
    std::vector<mob_rank_t> ranks;  // the last list of ranks; programs usually pass it again
    std::vector<mob_rank_t> group;  // the same ranks as members
    std::vector<bool> is_named;     // by member: whether the list being checked has it
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

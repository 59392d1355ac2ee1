// SPDX-License-Identifier: BSD-3-Clause
#include "engine/across.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "engine/engine.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;

// A member that only sends does not wait for others. After so many calls all meet, so that no more
// letters than that lie unread; and after so many bytes, of calls in which all know of how many
// there are.
constexpr size_t kMostOneWay = 32;
constexpr size_t kMostOneWayBytes = size_t{4} << 20;

const char* bytes_of(const void* memory) { return static_cast<const char*>(memory); }
char* bytes_of(void* memory) { return static_cast<char*>(memory); }

void copy_block(void* to, const void* from, size_t bytes) {
  if (to != from && bytes != 0) std::memmove(to, from, bytes);
}

}  // namespace

// Ends a wait when a member has died: who is awaited may be waiting for it. Leaders hear from one
// another in turns, so that each has all of them watched.
class Across::MembersWatch final : public os::Watch {
 public:
  MembersWatch(Across& across, mob_rank_t awaited) : across_(across), awaited_(awaited) {}

  mob_status_t look() override {
    Engine& engine = across_.engine_;
    engine.network().watch(across_.map_.world_rank(awaited_));
    for (size_t group = 0; group < across_.groups_.size(); ++group) {
      engine.network().watch(across_.map_.world_rank(across_.leader(group)));
    }
    for (mob_rank_t member = 0; member < across_.map_.size(); ++member) {
      const mob_rank_t rank = across_.map_.world_rank(member);
      if (engine.is_dead(rank)) {
        across_.lost_ = rank;
        return fail(MOB_ERR_PEER, "rank %d %s; this collective call cannot complete", rank,
                    engine.network().fate(rank).c_str());
      }
      const bool leaves =
          across_.id_ == kEndOfJob ? engine.is_leaving(rank) : engine.is_ending(rank);
      if (member == awaited_ && leaves) {
        return fail(MOB_ERR_PEER,
                    "rank %d leaves the job (mob_finalize) while others are in a collective call",
                    rank);
      }
    }
    return across_.mates_->is_broken()
               ? fail(MOB_ERR_PEER, "this team lost a member and is of no use")
               : MOB_OK;
  }

 private:
  Across& across_;
  const mob_rank_t awaited_;
};

Across::Across(Engine& engine, const TeamMap& map, mob_rank_t rank, uint64_t id,
               std::unique_ptr<Team> mates)
    : engine_(engine), map_(map), rank_(rank), id_(id), mates_(std::move(mates)) {
  std::vector<size_t> group_of_host(static_cast<size_t>(engine.job().hosts()), SIZE_MAX);
  for (mob_rank_t member = 0; member < map.size(); ++member) {
    const job::Place place = engine.job().place_of(map.world_rank(member));
    size_t& group = group_of_host[static_cast<size_t>(place.host)];
    if (group == SIZE_MAX) {
      group = groups_.size();
      groups_.emplace_back();
    }
    groups_[group].push_back(member);
    group_of_.push_back(static_cast<uint32_t>(group));
  }
  own_ = group_of(rank);
}

Across::~Across() { engine_.team_mail().forget(id_); }

bool Across::find_mates(const Engine& engine, const TeamMap& map, std::vector<mob_rank_t>* mates) {
  for (mob_rank_t member = 0; member < map.size(); ++member) {
    const mob_rank_t rank = map.world_rank(member);
    if (engine.is_here(rank)) mates->push_back(rank);
  }
  return mates->size() == static_cast<size_t>(map.size());
}

bool Across::is_broken() const { return mates_->is_broken(); }

mob_rank_t Across::mate_rank(mob_rank_t member) const {
  const Group& own = groups_[own_];
  return static_cast<mob_rank_t>(std::ranges::lower_bound(own, member) - own.begin());
}

// Who gives up lets the mates know: they would wait for it.
mob_status_t Across::ended(mob_status_t status) {
  if (status == MOB_ERR_PEER) mates_->rounds().give_up(lost_);
  return status;
}

mob_status_t Across::send(mob_rank_t member, const void* bytes, size_t count) {
  const mob_rank_t rank = map_.world_rank(member);
  const mob_status_t status = engine_.team_mail().send(id_, rank, bytes, count);
  if (status == MOB_ERR_PEER && engine_.is_dead(rank)) lost_ = rank;
  return status;
}

mob_status_t Across::receive(const char* call, mob_rank_t member, void* bytes, size_t count) {
  const mob_rank_t rank = map_.world_rank(member);
  Letter letter;
  MembersWatch watch(*this, member);
  const mob_status_t status =
      engine_.wait_until([&] { return engine_.team_mail().take(id_, rank, &letter); }, &watch);
  if (status != MOB_OK) return status;
  if (letter.count != count) {
    return fail(MOB_ERR_ARGUMENT, "%s: member %d passes %zu bytes but member %d expects %zu", call,
                member, letter.count, rank_, count);
  }
  if (count != 0) transport::copy(bytes, letter.bytes.get(), count);
  return MOB_OK;
}

// `bytes` may lie unread at one member: the same for all, so that all meet after the same call.
mob_status_t Across::note_one_way(mob_status_t status, size_t bytes) {
  if (status == MOB_ERR_PEER) return ended(status);
  // Also after an error of one member alone: all count alike.
  one_way_bytes_ += bytes;
  if (++one_way_ < kMostOneWay && one_way_bytes_ < kMostOneWayBytes) return status;
  const mob_status_t met = barrier();
  return status != MOB_OK ? status : met;
}

// Dissemination: in each round everybody hears of twice as many.
mob_status_t Across::meet_leaders() {
  const size_t groups = groups_.size();
  for (size_t distance = 1; distance < groups; distance *= 2) {
    mob_status_t status = send(leader((own_ + distance) % groups), nullptr, 0);
    if (status == MOB_OK) {
      status = receive("a barrier", leader((own_ + groups - distance) % groups), nullptr, 0);
    }
    if (status != MOB_OK) return status;
  }
  return MOB_OK;
}

mob_status_t Across::barrier() {
  forget_one_way();
  mob_status_t status = mates_->barrier();
  if (status == MOB_OK && leads()) status = meet_leaders();
  if (status == MOB_OK && mates_->size() > 1) status = mates_->barrier();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return ended(status);
}

mob_status_t Across::broadcast(mob_rank_t root, void* buffer, size_t bytes) {
  mob_status_t status = MOB_OK;
  if (rank_ == root) {
    for (size_t group = 0; status == MOB_OK && group < groups_.size(); ++group) {
      if (group != own_) status = send(leader(group), buffer, bytes);
    }
  } else if (leads() && !is_mate(root)) {
    status = receive("mob_broadcast", root, buffer, bytes);
  }
  const mob_rank_t first = is_mate(root) ? mate_rank(root) : 0;
  if (status == MOB_OK) status = engine::broadcast(*mates_, first, buffer, bytes);
  return note_one_way(status, bytes);
}

mob_status_t Across::gather(mob_rank_t root, const void* in, size_t mine, void* out,
                            const Blocks& blocks) {
  // Only the root knows of them where they differ.
  const size_t known = blocks.by_lists ? 0 : static_cast<size_t>(map_.size()) * blocks.bytes;
  if (!is_mate(root)) return note_one_way(send(root, in, mine), known);
  std::vector<size_t> counts;
  std::vector<size_t> displacements;
  if (rank_ == root) {
    for (const mob_rank_t member : groups_[own_]) {
      counts.push_back(blocks.size(member));
      displacements.push_back(blocks.at(member));
    }
  }
  Blocks local = Blocks::listed(counts.data(), displacements.data());
  local.by_lists = true;
  mob_status_t status = engine::gather(*mates_, mate_rank(root), in, mine, out, local);
  for (mob_rank_t member = 0; rank_ == root && member < map_.size(); ++member) {
    if (is_mate(member)) continue;
    // All letters are taken, so that the next call finds its own.
    const mob_status_t received =
        receive("mob_gatherv", member, bytes_of(out) + blocks.at(member), blocks.size(member));
    if (status == MOB_OK) status = received;
  }
  return note_one_way(status, known);
}

// Each leader has its host's blocks in `packed`, where they start at starts[group]; gets all.
mob_status_t Across::exchange_leaders(std::vector<char>& packed,
                                      const std::vector<size_t>& starts) {
  const size_t groups = groups_.size();
  const auto bytes = [&](size_t group) { return starts[group + 1] - starts[group]; };
  for (size_t i = 1; i < groups; ++i) {
    const size_t group = (own_ + i) % groups;
    const mob_status_t status = send(leader(group), packed.data() + starts[own_], bytes(own_));
    if (status != MOB_OK) return status;
  }
  for (size_t i = 1; i < groups; ++i) {
    const size_t group = (own_ + groups - i) % groups;
    const mob_status_t status =
        receive("a collective call", leader(group), packed.data() + starts[group], bytes(group));
    if (status != MOB_OK) return status;
  }
  return MOB_OK;
}

mob_status_t Across::allgather(const void* in, void* out, const Blocks& blocks) {
  forget_one_way();
  // Host by host, each host's blocks by rank.
  std::vector<size_t> starts{0};
  for (const Group& group : groups_) {
    size_t bytes = 0;
    for (const mob_rank_t member : group) bytes += blocks.size(member);
    starts.push_back(starts.back() + bytes);
  }
  std::vector<char> packed(starts.back());
  std::vector<size_t> counts;
  std::vector<size_t> displacements{0};
  for (const mob_rank_t member : groups_[own_]) {
    counts.push_back(blocks.size(member));
    displacements.push_back(displacements.back() + counts.back());
  }
  mob_status_t status =
      engine::gather(*mates_, 0, in, blocks.size(rank_), packed.data() + starts[own_],
                     Blocks::listed(counts.data(), displacements.data()));
  if (status == MOB_OK && leads()) status = exchange_leaders(packed, starts);
  if (status == MOB_OK) status = engine::broadcast(*mates_, 0, packed.data(), packed.size());
  if (status != MOB_OK) return ended(status);
  for (size_t group = 0; group < groups_.size(); ++group) {
    const char* from = packed.data() + starts[group];
    for (const mob_rank_t member : groups_[group]) {
      copy_block(bytes_of(out) + blocks.at(member), from, blocks.size(member));
      from += blocks.size(member);
    }
  }
  // One member alone on its host with nothing to say has met nobody yet; letters were exchanged,
  // so that all have come.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return MOB_OK;
}

mob_status_t Across::scatter(mob_rank_t root, const void* in, void* out, size_t bytes) {
  if (!is_mate(root)) return note_one_way(receive("mob_scatter", root, out, bytes), bytes);
  mob_status_t status = MOB_OK;
  std::vector<char> own;
  if (rank_ == root) {
    for (mob_rank_t member = 0; status == MOB_OK && member < map_.size(); ++member) {
      const char* block = bytes_of(in) + static_cast<size_t>(member) * bytes;
      if (is_mate(member)) {
        own.insert(own.end(), block, block + bytes);
      } else {
        status = send(member, block, bytes);
      }
    }
  }
  if (status == MOB_OK) status = engine::scatter(*mates_, mate_rank(root), own.data(), out, bytes);
  return note_one_way(status, bytes);
}

mob_status_t Across::alltoall(const void* in, const Blocks& in_blocks, void* out,
                              const Blocks& out_blocks) {
  forget_one_way();
  // In place, blocks would come over those that are still to be sent.
  mob_status_t status = MOB_OK;
  const mob_rank_t members = map_.size();
  for (mob_rank_t i = 1; status == MOB_OK && i < members; ++i) {
    const mob_rank_t member = (rank_ + i) % members;
    if (is_mate(member)) continue;
    status = send(member, bytes_of(in) + in_blocks.at(member), in_blocks.size(member));
  }
  const Group& own = groups_[own_];
  std::vector<size_t> in_counts;
  std::vector<size_t> in_places;
  std::vector<size_t> out_counts;
  std::vector<size_t> out_places;
  for (const mob_rank_t member : own) {
    in_counts.push_back(in_blocks.size(member));
    in_places.push_back(in_blocks.at(member));
    out_counts.push_back(out_blocks.size(member));
    out_places.push_back(out_blocks.at(member));
  }
  if (status == MOB_OK) {
    status = engine::alltoall(*mates_, in, Blocks::listed(in_counts.data(), in_places.data()), out,
                              Blocks::listed(out_counts.data(), out_places.data()));
  }
  for (mob_rank_t i = 1; i < members; ++i) {
    const mob_rank_t member = (rank_ + members - i) % members;
    if (is_mate(member)) continue;
    const mob_status_t received = receive(
        "mob_alltoall", member, bytes_of(out) + out_blocks.at(member), out_blocks.size(member));
    if (status == MOB_OK) status = received;
    if (status == MOB_ERR_PEER) break;
  }
  return ended(status);
}

}  // namespace mobius::engine

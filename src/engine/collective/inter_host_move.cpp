// SPDX-License-Identifier: BSD-3-Clause

// Collective calls of teams on several hosts that move data. Leaders pack and unpack what goes
// between two hosts, because a message costs far more than a copy in shared memory.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/collective/inter_host.h"
#include "engine/collective/inter_host_blocks.h"

namespace mobius::engine {
namespace {

using base::fail;

// From this size on the leaders' copies cost more than messages from member to member. It counts
// the bytes between a root and all members of another host.
constexpr size_t kMemberBytes = size_t{256} << 10;

}  // namespace

// A binomial tree of hosts. The root acts as the leader of its own host.
mob_status_t InterHost::broadcast_to_hosts(mob_rank_t root, void* buffer, size_t bytes) {
  const size_t groups = groups_.size();
  const size_t first = group_of(root);
  const size_t place = (own_ + groups - first) % groups;
  const auto at = [&](size_t other) {
    return other == 0 ? root : leader((first + other) % groups);
  };
  mob_status_t status = MOB_OK;
  if (place != 0) status = receive("mob_broadcast", at(place & (place - 1)), root, buffer, bytes);
  // Sends first to the host with the largest subtree.
  size_t step = 1;
  while (step < groups && (place & step) == 0) step *= 2;
  for (step /= 2; step != 0; step /= 2) {
    if (place + step < groups) send_outcome(&status, at(place + step), buffer, bytes);
  }
  return status;
}

mob_status_t InterHost::broadcast(mob_rank_t root, void* buffer, size_t bytes) {
  const bool is_here = is_local(root);
  mob_status_t status = MOB_OK;
  if (rank_ == root || (leads() && !is_here)) status = broadcast_to_hosts(root, buffer, bytes);
  if (!is_here) {
    status = hand_on(status, buffer, bytes);
  } else if (status == MOB_OK) {
    status = engine::broadcast(*local_team_, local_rank(root), buffer, bytes);
  }
  return note_one_way(status, bytes);
}

// Whether a root and the members of a host exchange blocks of `bytes` bytes without the leader.
bool InterHost::goes_by_members(size_t group, size_t bytes) const {
  return groups_[group].size() == 1 || groups_[group].size() * bytes >= kMemberBytes;
}

mob_status_t InterHost::gather(mob_rank_t root, const void* in, size_t mine, void* out,
                               const Blocks& blocks) {
  // With lists the total is known to the root alone.
  const size_t known = blocks.by_lists ? 0 : static_cast<size_t>(map_.size()) * blocks.bytes;
  std::vector<size_t> sizes(own().size(), mine);
  mob_status_t status = MOB_OK;
  if (blocks.by_lists) status = local_team_->exchange(mine, &sizes);
  if (!is_local(root)) {
    if (status == MOB_OK || leads()) {
      status = gather_there(status, root, in, mine, blocks.by_lists, sizes);
    }
    return note_one_way(status, known);
  }
  if (status == MOB_OK) status = gather_here(root, in, mine, out, blocks, sizes);
  // Takes all messages, so that the next call does not find them.
  for (size_t group = 0; rank_ == root && group < groups_.size() && !is_broken(); ++group) {
    if (group == own_) continue;
    go_on(&status, [&] { return take_gathered(group, out, blocks); });
  }
  return note_one_way(status, known);
}

// On the root's host. `sizes` are those of all members of this host.
mob_status_t InterHost::gather_here(mob_rank_t root, const void* in, size_t mine, void* out,
                                    const Blocks& blocks, const std::vector<size_t>& sizes) {
  const size_t largest = *std::ranges::max_element(sizes);
  const mob_rank_t first = local_rank(root);
  if (rank_ != root) {
    return engine::gather_sized(*local_team_, first, in, mine, nullptr, Blocks::packed(mine),
                                largest);
  }
  mob_status_t mismatch = MOB_OK;
  for (size_t i = 0; mismatch == MOB_OK && i < sizes.size(); ++i) {
    mismatch = check_gathered(own()[i], sizes[i], blocks);
  }
  const Selected selected(blocks, own());
  const mob_status_t status =
      engine::gather_sized(*local_team_, first, in, mine, mismatch == MOB_OK ? out : nullptr,
                           selected.blocks(), largest);
  return status != MOB_OK ? status : mismatch;
}

mob_status_t InterHost::check_gathered(mob_rank_t member, size_t bytes,
                                       const Blocks& blocks) const {
  if (bytes == blocks.size(member)) return MOB_OK;
  return fail(MOB_ERR_ARGUMENT, "mob_gatherv: member %d passes %zu bytes but member %d expects %zu",
              member, bytes, rank_, blocks.size(member));
}

// On other hosts. One message holds all blocks of the host, after their sizes if those differ.
// Large blocks follow from member to member. A block that is alone on its host is a message by
// itself.
mob_status_t InterHost::gather_there(mob_status_t status, mob_rank_t root, const void* in,
                                     size_t mine, bool by_lists, const std::vector<size_t>& sizes) {
  if (sizes.size() == 1) {
    send_outcome(&status, root, in, mine);
    return status;
  }
  const std::vector<size_t> starts = starts_of(sizes);
  const size_t head = by_lists ? sizes.size() * sizeof(size_t) : 0;
  if (starts.back() >= kMemberBytes) {
    if (by_lists && leads()) send_outcome(&status, root, sizes.data(), head);
    send_outcome(&status, root, in, mine);
    return status;
  }
  const size_t bytes = leads() ? head + starts.back() : 0;
  const std::unique_ptr<char[]> message = room_for(bytes);
  if (status == MOB_OK) {
    const Blocks packed =
        by_lists ? Blocks::listed(sizes.data(), starts.data()) : Blocks::packed(mine);
    status = engine::gather_sized(*local_team_, 0, in, mine, message.get() + head, packed,
                                  *std::ranges::max_element(sizes));
  }
  if (!leads()) return status;
  std::memcpy(message.get(), sizes.data(), head);
  send_outcome(&status, root, message.get(), bytes);
  return status;
}

// At the root. Receives what gather_there() sent.
mob_status_t InterHost::take_gathered(size_t group, void* out, const Blocks& blocks) {
  const Group& members = groups_[group];
  if (members.size() == 1 || (!blocks.by_lists && goes_by_members(group, blocks.bytes))) {
    return take_from_each(members, out, blocks);
  }
  TeamMessage message;
  if (const mob_status_t status = take("mob_gatherv", leader(group), leader(group), &message)) {
    return status;
  }
  std::vector<size_t> sizes(members.size(), message.count / members.size());
  const size_t head = blocks.by_lists ? members.size() * sizeof(size_t) : 0;
  if (head <= message.count) std::memcpy(sizes.data(), message.bytes.get(), head);
  const std::vector<size_t> starts = starts_of(sizes);
  if (blocks.by_lists && starts.back() >= kMemberBytes) return take_from_each(members, out, blocks);
  for (size_t i = 0; i < members.size(); ++i) {
    if (const mob_status_t status = check_gathered(members[i], sizes[i], blocks)) return status;
  }
  if (head + starts.back() != message.count) {
    return fail(MOB_ERR_ARGUMENT, "mob_gatherv: member %d passes %zu bytes but %zu were expected",
                leader(group), message.count, head + starts.back());
  }
  for (size_t i = 0; i < members.size(); ++i) {
    copy_block(bytes_of(out) + blocks.at(members[i]), message.bytes.get() + head + starts[i],
               sizes[i]);
  }
  return MOB_OK;
}

mob_status_t InterHost::take_from_each(const Group& members, void* out, const Blocks& blocks) {
  mob_status_t status = MOB_OK;
  for (const mob_rank_t member : members) {
    if (is_broken()) break;
    go_on(&status, [&] {
      return receive("mob_gatherv", member, bytes_of(out) + blocks.at(member), blocks.size(member));
    });
  }
  return status;
}

mob_status_t InterHost::allgather(const void* in, void* out, const Blocks& blocks) {
  forget_one_way();
  // Ordered by host, and on each host by rank.
  std::vector<size_t> starts{0};
  for (const Group& group : groups_) {
    size_t bytes = 0;
    for (const mob_rank_t member : group) bytes += blocks.size(member);
    starts.push_back(starts.back() + bytes);
  }
  std::vector<char> packed(starts.back());
  std::vector<size_t> counts;
  for (const mob_rank_t member : own()) counts.push_back(blocks.size(member));
  const std::vector<size_t> displacements = starts_of(counts);
  const Blocks local = blocks.by_lists ? Blocks::listed(counts.data(), displacements.data())
                                       : Blocks::packed(blocks.bytes);
  mob_status_t status =
      engine::gather_sized(*local_team_, 0, in, blocks.size(rank_), packed.data() + starts[own_],
                           local, *std::ranges::max_element(counts));
  const mob_status_t exchanged = leads() ? exchange_leaders(status, packed, starts) : MOB_OK;
  if (status == MOB_OK) status = hand_on(exchanged, packed.data(), packed.size());
  if (status != MOB_OK) return ended(status);
  for (size_t group = 0; group < groups_.size(); ++group) {
    const char* from = packed.data() + starts[group];
    for (const mob_rank_t member : groups_[group]) {
      copy_block(bytes_of(out) + blocks.at(member), from, blocks.size(member));
      from += blocks.size(member);
    }
  }
  // A member that is alone on its host and has no data has not met anybody yet. All members have
  // arrived all the same, because the leaders exchanged messages. The fence stands for the one of a
  // barrier.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return MOB_OK;
}

mob_status_t InterHost::scatter(mob_rank_t root, const void* in, void* out, size_t bytes) {
  const mob_status_t status =
      is_local(root) ? scatter_here(root, in, out, bytes) : scatter_there(root, out, bytes);
  // The most that may lie unread at a leader or at another member.
  const size_t unread = std::max(bytes, std::min(largest_group_ * bytes, kMemberBytes));
  return note_one_way(status, unread);
}

mob_status_t InterHost::scatter_here(mob_rank_t root, const void* in, void* out, size_t bytes) {
  mob_status_t status = MOB_OK;
  std::vector<char> packed;
  if (rank_ == root) {
    const auto block = [&](mob_rank_t member) {
      return bytes_of(in) + static_cast<size_t>(member) * bytes;
    };
    const auto pack = [&](const Group& members) {
      packed.clear();
      for (const mob_rank_t member : members) {
        packed.insert(packed.end(), block(member), block(member) + bytes);
      }
    };
    for (size_t group = 0; group < groups_.size(); ++group) {
      if (group == own_) continue;
      if (goes_by_members(group, bytes)) {
        for (const mob_rank_t member : groups_[group]) {
          send_outcome(&status, member, block(member), bytes);
        }
      } else {
        pack(groups_[group]);
        send_outcome(&status, leader(group), packed.data(), packed.size());
      }
    }
    pack(own());
  }
  if (status != MOB_OK) return status;
  return engine::scatter(*local_team_, local_rank(root), packed.data(), out, bytes);
}

mob_status_t InterHost::scatter_there(mob_rank_t root, void* out, size_t bytes) {
  if (goes_by_members(own_, bytes)) return receive("mob_scatter", root, out, bytes);
  mob_status_t status = MOB_OK;
  std::unique_ptr<char[]> blocks;
  if (leads()) {
    const size_t all = own().size() * bytes;
    blocks = room_for(all);
    status = receive("mob_scatter", root, blocks.get(), all);
  }
  status = share_outcome(status);
  if (status != MOB_OK) return status;
  return engine::scatter(*local_team_, 0, blocks.get(), out, bytes);
}

}  // namespace mobius::engine

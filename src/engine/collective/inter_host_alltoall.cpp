// SPDX-License-Identifier: BSD-3-Clause

// mob_alltoall() of teams on several hosts. Leaders pack small blocks, so that one message goes
// between two hosts; large blocks go from member to member. inter_host_alltoallv.cpp handles blocks
// of different sizes.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/collective/inter_host.h"
#include "engine/collective/inter_host_blocks.h"

namespace mobius::engine {
namespace {

// From this block size on the leaders' copies cost more than messages from member to member.
constexpr size_t kMemberBlockBytes = size_t{4} << 10;

}  // namespace

mob_status_t InterHost::alltoall(const void* in, const Blocks& in_blocks, void* out,
                                 const Blocks& out_blocks) {
  forget_one_way();
  if (largest_group_ == 1 || sizeof(uint64_t) + groups_.size() > kToldBytes) {
    return ended(alltoall_by_members(in, in_blocks, out, out_blocks));
  }
  if (in_blocks.by_lists) return ended(alltoallv(in, in_blocks, out, out_blocks));
  return ended(goes_by_leaders(in_blocks.bytes)
                   ? alltoall_by_leaders(in, out, in_blocks.bytes)
                   : alltoall_by_members(in, in_blocks, out, out_blocks));
}

bool InterHost::goes_by_leaders(size_t bytes) const {
  return bytes < kMemberBlockBytes &&
         largest_group_ * static_cast<size_t>(map_.size()) * bytes <= kMostRowsBytes;
}

// Each leader collects the inputs of its host's members, one row each, and distributes their
// outputs. Safe in place: the leader has all inputs before a member gets its output.
mob_status_t InterHost::alltoall_by_leaders(const void* in, void* out, size_t bytes) {
  const size_t row = static_cast<size_t>(map_.size()) * bytes;
  std::vector<char> rows(leads() ? own().size() * row : 0);
  mob_status_t status =
      engine::gather_sized(*local_team_, 0, in, row, rows.data(), Blocks::packed(row), row);
  const mob_status_t exchanged = leads() ? exchange_rows(status, rows, bytes) : MOB_OK;
  if (status == MOB_OK) status = share_outcome(exchanged);
  if (status != MOB_OK) return status;
  return engine::scatter(*local_team_, 0, rows.data(), out, row);
}

// A message between two hosts holds the blocks of one host's members for the other's, receiver by
// receiver.
mob_status_t InterHost::exchange_rows(mob_status_t status, std::vector<char>& rows, size_t bytes) {
  const size_t row = static_cast<size_t>(map_.size()) * bytes;
  std::vector<char> sent(rows.size());
  std::vector<char> received(rows.size());
  std::vector<Parcel> parcels;
  size_t start = 0;
  for (const Group& group : groups_) {
    const size_t all = group.size() * own().size() * bytes;
    parcels.push_back({sent.data() + start, all, received.data() + start, all});
    char* at = sent.data() + start;
    for (const mob_rank_t receiver : group) {
      for (size_t sender = 0; sender < own().size(); ++sender, at += bytes) {
        copy_block(at, rows.data() + sender * row + static_cast<size_t>(receiver) * bytes, bytes);
      }
    }
    start += all;
  }
  status = exchange_parcels("mob_alltoall", status, parcels);
  parcels[own_].in = sent.data() + (parcels[own_].in - received.data());
  for (size_t group = 0; status == MOB_OK && group < groups_.size(); ++group) {
    const char* at = parcels[group].in;
    for (size_t receiver = 0; receiver < own().size(); ++receiver) {
      for (const mob_rank_t sender : groups_[group]) {
        copy_block(rows.data() + receiver * row + static_cast<size_t>(sender) * bytes, at, bytes);
        at += bytes;
      }
    }
  }
  return status;
}

mob_status_t InterHost::alltoall_by_members(const void* in, const Blocks& in_blocks, void* out,
                                            const Blocks& out_blocks) {
  const std::vector<char> all(groups_.size(), 1);
  mob_status_t status = MOB_OK;
  send_to_members(&status, all, in, in_blocks);
  exchange_with_local_peers(&status, in, in_blocks, out, out_blocks);
  receive_from_members(&status, all, out, out_blocks);
  return status;
}

// Must come before anything is received: in place, the others' blocks would overwrite blocks that
// are still to be sent.
void InterHost::send_to_members(mob_status_t* status, const std::vector<char>& groups,
                                const void* in, const Blocks& blocks) {
  const mob_rank_t members = map_.size();
  for (mob_rank_t i = 1; i < members; ++i) {
    const mob_rank_t member = (rank_ + i) % members;
    if (is_local(member) || groups[group_of(member)] == 0) continue;
    send_outcome(status, member, bytes_of(in) + blocks.at(member), blocks.size(member));
  }
}

void InterHost::exchange_with_local_peers(mob_status_t* status, const void* in,
                                          const Blocks& in_blocks, void* out,
                                          const Blocks& out_blocks) {
  if (*status != MOB_OK) return;
  const Selected given(in_blocks, own());
  const Selected taken(out_blocks, own());
  *status = engine::alltoall(*local_team_, in, given.blocks(), out, taken.blocks());
}

void InterHost::receive_from_members(mob_status_t* status, const std::vector<char>& groups,
                                     void* out, const Blocks& blocks) {
  const char* const call = blocks.by_lists ? "mob_alltoallv" : "mob_alltoall";
  const mob_rank_t members = map_.size();
  for (mob_rank_t i = 1; i < members && !is_broken(); ++i) {
    const mob_rank_t member = (rank_ + members - i) % members;
    if (is_local(member) || groups[group_of(member)] == 0) continue;
    go_on(status, [&] {
      return receive(call, member, bytes_of(out) + blocks.at(member), blocks.size(member));
    });
  }
}

}  // namespace mobius::engine

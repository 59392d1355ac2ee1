// SPDX-License-Identifier: BSD-3-Clause

// mob_alltoall() and mob_alltoallv() of teams on several hosts. Small blocks are put together by
// leaders, so that one letter goes between two hosts, large ones go from member to member.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/across.h"
#include "engine/across_blocks.h"
#include "engine/engine.h"

namespace mobius::engine {
namespace {

using base::fail;

// From here on, of a block, the leaders' copies cost more than letters from member to member; of
// blocks of different sizes on average.
constexpr size_t kMemberBlockBytes = size_t{4} << 10;
constexpr size_t kListedBlockBytes = size_t{2} << 10;
// The most of its mates' blocks that a leader keeps.
constexpr size_t kMostRowsBytes = size_t{64} << 20;

void append(std::vector<char>& to, const void* from, size_t bytes) {
  const char* const first = bytes_of(from);
  to.insert(to.end(), first, first + bytes);
}

// Takes a size from a list of them.
uint64_t next_size(const char*& list) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, list, sizeof bytes);
  list += sizeof bytes;
  return bytes;
}

// Of sizes that may be too large to be added up: then more than any letter has.
uint64_t sum_of(const char* list, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::min<uint64_t>(next_size(list), kMostRowsBytes);
  return sum;
}

// The most that one of several receivers gets, of sizes sender by sender.
uint64_t most_of(const char* list, size_t senders, size_t receivers) {
  std::vector<uint64_t> sums(receivers, 0);
  for (size_t i = 0; i < senders * receivers; ++i) {
    sums[i % receivers] += std::min<uint64_t>(next_size(list), kMostRowsBytes);
  }
  return *std::ranges::max_element(sums);
}

}  // namespace

mob_status_t Across::alltoall(const void* in, const Blocks& in_blocks, void* out,
                              const Blocks& out_blocks) {
  forget_one_way();
  if (largest_group_ == 1 || sizeof(uint64_t) + groups_.size() > kToldBytes) {
    return ended(alltoall_by_members(in, in_blocks, out, out_blocks));
  }
  if (in_blocks.by_lists) return ended(alltoall_listed(in, in_blocks, out, out_blocks));
  return ended(goes_by_leaders(in_blocks.bytes)
                   ? alltoall_by_leaders(in, out, in_blocks.bytes)
                   : alltoall_by_members(in, in_blocks, out, out_blocks));
}

bool Across::goes_by_leaders(size_t bytes) const {
  return bytes < kMemberBlockBytes &&
         largest_group_ * static_cast<size_t>(map_.size()) * bytes <= kMostRowsBytes;
}

// Each leader has its mates' inputs, a row for each, and gets their outputs. In place, all inputs
// are with the leaders before an output comes.
mob_status_t Across::alltoall_by_leaders(const void* in, void* out, size_t bytes) {
  const size_t row = static_cast<size_t>(map_.size()) * bytes;
  std::vector<char> rows(leads() ? own().size() * row : 0);
  mob_status_t status =
      engine::gather_sized(*mates_, 0, in, row, rows.data(), Blocks::packed(row), row);
  const mob_status_t exchanged = leads() ? exchange_rows(status, rows, bytes) : MOB_OK;
  if (status == MOB_OK) status = share_outcome(exchanged);
  if (status != MOB_OK) return status;
  return engine::scatter(*mates_, 0, rows.data(), out, row);
}

// Between two hosts travels what one's members have for the other's, receiver by receiver.
mob_status_t Across::exchange_rows(mob_status_t status, std::vector<char>& rows, size_t bytes) {
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

mob_status_t Across::alltoall_by_members(const void* in, const Blocks& in_blocks, void* out,
                                         const Blocks& out_blocks) {
  const std::vector<char> all(groups_.size(), 1);
  mob_status_t status = MOB_OK;
  send_to_members(&status, all, in, in_blocks);
  exchange_with_mates(&status, in, in_blocks, out, out_blocks);
  receive_from_members(&status, all, out, out_blocks);
  return status;
}

// In place, blocks of others would come over those that are still to be sent: this comes first.
void Across::send_to_members(mob_status_t* status, const std::vector<char>& groups, const void* in,
                             const Blocks& blocks) {
  const mob_rank_t members = map_.size();
  for (mob_rank_t i = 1; i < members; ++i) {
    const mob_rank_t member = (rank_ + i) % members;
    if (is_mate(member) || groups[group_of(member)] == 0) continue;
    send_outcome(status, member, bytes_of(in) + blocks.at(member), blocks.size(member));
  }
}

void Across::exchange_with_mates(mob_status_t* status, const void* in, const Blocks& in_blocks,
                                 void* out, const Blocks& out_blocks) {
  if (*status != MOB_OK) return;
  const Selected given(in_blocks, own());
  const Selected taken(out_blocks, own());
  *status = engine::alltoall(*mates_, in, given.blocks(), out, taken.blocks());
}

void Across::receive_from_members(mob_status_t* status, const std::vector<char>& groups, void* out,
                                  const Blocks& blocks) {
  const char* const call = blocks.by_lists ? "mob_alltoallv" : "mob_alltoall";
  const mob_rank_t members = map_.size();
  for (mob_rank_t i = 1; i < members && !is_broken(); ++i) {
    const mob_rank_t member = (rank_ + members - i) % members;
    if (is_mate(member) || groups[group_of(member)] == 0) continue;
    go_on(status, [&] {
      return receive(call, member, bytes_of(out) + blocks.at(member), blocks.size(member));
    });
  }
}

// Blocks of different sizes. Each member knows its own: what a host has for another, and so
// whether that is one letter, its members add up; those of the other host learn it from the sizes
// that come first in each letter of a leader. Where either host has one member, that is no other
// letter than from leader to member; where both have, there are no sizes.
mob_status_t Across::alltoall_listed(const void* in, const Blocks& in_blocks, void* out,
                                     const Blocks& out_blocks) {
  std::vector<char> by_members(groups_.size(), 0);  // of each host that is sent to
  mob_status_t status = find_ways(in_blocks, &by_members);
  std::vector<char> rows;
  std::vector<size_t> starts;
  if (status == MOB_OK) status = gather_rows(in, in_blocks, by_members, &rows, &starts);
  // Without the sizes others do not know what comes.
  if (status != MOB_OK) give_up();
  if (leads()) send_rows(&status, by_members, rows.data(), starts);
  send_to_members(&status, by_members, in, in_blocks);
  exchange_with_mates(&status, in, in_blocks, out, out_blocks);
  const mob_status_t taken = take_rows(&by_members, out, out_blocks);
  if (status == MOB_OK) status = taken;
  if (!is_broken()) receive_from_members(&status, by_members, out, out_blocks);
  return status;
}

// `most`: bytes that one of the receivers gets. Their leader hands as many on to each of them.
bool Across::share_a_letter(size_t from, size_t to, uint64_t most) const {
  return most < groups_[from].size() * kListedBlockBytes &&
         most <= kMostRowsBytes / (groups_.size() * groups_[to].size());
}

// Collective over the mates: which hosts get their blocks from member to member.
mob_status_t Across::find_ways(const Blocks& blocks, std::vector<char>* by_members) {
  std::vector<uint64_t> sums;  // that each member gets from this host
  for (mob_rank_t member = 0; member < map_.size(); ++member) {
    sums.push_back(std::min(blocks.size(member), kMostRowsBytes));
  }
  const mob_status_t status =
      engine::fold(*mates_, {FoldResult::Kind::kAll}, Combiner(MOB_SUM, MOB_UINT64), sums.data(),
                   sums.data(), sums.size());
  for (size_t group = 0; group < groups_.size(); ++group) {
    uint64_t most = 0;
    for (const mob_rank_t member : groups_[group]) {
      most = std::max(most, sums[static_cast<size_t>(member)]);
    }
    (*by_members)[group] = !has_sizes(group) || !share_a_letter(own_, group, most) ? 1 : 0;
  }
  return status;
}

// Collective over the mates. A row is what a member has for other hosts, host by host: the sizes of
// its blocks; then those of the blocks that leaders exchange.
mob_status_t Across::gather_rows(const void* in, const Blocks& blocks,
                                 const std::vector<char>& by_members, std::vector<char>* rows,
                                 std::vector<size_t>* starts) {
  std::vector<char> row;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (!has_sizes(group)) continue;
    for (const mob_rank_t member : groups_[group]) {
      const uint64_t bytes = blocks.size(member);
      append(row, &bytes, sizeof bytes);
    }
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (!has_sizes(group) || by_members[group] != 0) continue;
    for (const mob_rank_t member : groups_[group]) {
      append(row, bytes_of(in) + blocks.at(member), blocks.size(member));
    }
  }
  std::vector<size_t> sizes;
  if (const mob_status_t status = mates_->exchange(row.size(), &sizes)) return status;
  *starts = starts_of(sizes);
  if (leads()) rows->resize(starts->back());
  return engine::gather_sized(*mates_, 0, row.data(), row.size(), rows->data(),
                              Blocks::listed(sizes.data(), starts->data()),
                              *std::ranges::max_element(sizes));
}

// By leaders, from the rows of their mates: to each host the sizes, sender by sender, and the
// blocks in the same order.
void Across::send_rows(mob_status_t* status, const std::vector<char>& by_members, const char* rows,
                       const std::vector<size_t>& starts) {
  std::vector<const char*> sizes;   // of each sender: where those for the next host are
  std::vector<const char*> blocks;  // … and its blocks
  size_t listed = 0;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (has_sizes(group)) listed += groups_[group].size();
  }
  for (size_t sender = 0; *status == MOB_OK && sender < own().size(); ++sender) {
    sizes.push_back(rows + starts[sender]);
    blocks.push_back(sizes.back() + listed * sizeof(uint64_t));
  }
  std::vector<char> letter;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (!has_sizes(group)) continue;
    letter.clear();
    const size_t receivers = groups_[group].size();
    for (const char*& at : sizes) {
      append(letter, at, receivers * sizeof(uint64_t));
      at += receivers * sizeof(uint64_t);
    }
    for (size_t sender = 0; by_members[group] == 0 && sender < sizes.size(); ++sender) {
      const size_t bytes = sum_of(letter.data() + sender * receivers * sizeof(uint64_t), receivers);
      append(letter, blocks[sender], bytes);
      blocks[sender] += bytes;
    }
    send_outcome(status, leader(group), letter.data(), letter.size());
  }
}

// Collective over the mates. Leaders take what send_rows() has sent, and give each mate its own:
// the sizes of its blocks, then the blocks, sender by sender. `by_members`: of each host that has
// sent.
mob_status_t Across::take_rows(std::vector<char>* by_members, void* out, const Blocks& blocks) {
  std::vector<Share> shares(leads() ? own().size() : 0);
  uint64_t largest = 0;
  mob_status_t status = MOB_OK;
  for (size_t group = 0; leads() && status == MOB_OK && group < groups_.size(); ++group) {
    if (has_sizes(group)) status = take_row(group, &(*by_members)[group], shares);
  }
  // Nobody here knows what else would come.
  if (status != MOB_OK) give_up();
  for (const Share& share : shares) {
    largest = std::max<uint64_t>(largest, share.sizes.size() + share.blocks.size());
  }
  std::vector<char> told(sizeof largest + by_members->size());
  std::memcpy(told.data(), &largest, sizeof largest);
  std::ranges::copy(*by_members, told.begin() + sizeof largest);
  if ((status = share_outcome(status, told.data(), told.size()))) return status;
  std::memcpy(&largest, told.data(), sizeof largest);
  std::copy(told.begin() + sizeof largest, told.end(), by_members->begin());
  std::vector<char> slots(leads() ? own().size() * largest : 0);
  for (size_t mate = 0; mate < shares.size(); ++mate) {
    char* const to = std::ranges::copy(shares[mate].sizes, slots.data() + mate * largest).out;
    std::ranges::copy(shares[mate].blocks, to);
  }
  std::vector<char> slot(largest);
  if ((status = engine::scatter(*mates_, 0, slots.data(), slot.data(), largest))) return status;
  return take_share(slot.data(), *by_members, out, blocks);
}

mob_status_t Across::take_row(size_t group, char* by_members, std::vector<Share>& shares) {
  Letter letter;
  if (const mob_status_t status = take("mob_alltoallv", leader(group), leader(group), &letter)) {
    return status;
  }
  const size_t pairs = groups_[group].size() * own().size();
  const size_t head = pairs * sizeof(uint64_t);
  const char* sizes = letter.bytes.get();
  const bool has_head = letter.count >= head;
  const bool is_shared =
      has_head && share_a_letter(group, own_, most_of(sizes, groups_[group].size(), own().size()));
  if (!has_head || letter.count - head != (is_shared ? sum_of(sizes, pairs) : 0)) {
    return fail(MOB_ERR_SYSTEM, "mob_alltoallv: what member %d has sent makes no sense",
                leader(group));
  }
  *by_members = is_shared ? 0 : 1;
  const char* blocks = sizes + head;
  for (size_t pair = 0; is_shared && pair < pairs; ++pair) {
    const uint64_t bytes = next_size(sizes);
    Share& share = shares[pair % own().size()];
    append(share.sizes, &bytes, sizeof bytes);
    append(share.blocks, blocks, bytes);
    blocks += bytes;
  }
  return MOB_OK;
}

mob_status_t Across::take_share(const char* slot, const std::vector<char>& by_members, void* out,
                                const Blocks& blocks) const {
  size_t listed = 0;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (by_members[group] == 0) listed += groups_[group].size();
  }
  const char* sizes = slot;
  const char* from = slot + listed * sizeof(uint64_t);
  mob_status_t status = MOB_OK;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (by_members[group] != 0) continue;
    for (const mob_rank_t member : groups_[group]) {
      const uint64_t bytes = next_size(sizes);
      if (bytes == blocks.size(member)) {
        copy_block(bytes_of(out) + blocks.at(member), from, bytes);
      } else if (status == MOB_OK) {
        status = fail(MOB_ERR_ARGUMENT,
                      "mob_alltoallv: member %d passes %zu bytes but member %d expects %zu", member,
                      static_cast<size_t>(bytes), rank_, blocks.size(member));
      }
      from += bytes;
    }
  }
  return status;
}

}  // namespace mobius::engine

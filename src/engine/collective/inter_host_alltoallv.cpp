// SPDX-License-Identifier: BSD-3-Clause

// mob_alltoallv() of teams on several hosts. Each member knows only the sizes of its own blocks.
// The members of a host add up what they send to another host, and so decide whether the blocks
// travel in one message of the leaders or from member to member. The receiving host makes the same
// decision from the sizes, which come first in each leader's message. Two members that are both
// alone on their hosts exchange no sizes, only messages from member to member.

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/collective/inter_host.h"
#include "engine/collective/inter_host_blocks.h"

namespace mobius::engine {
namespace {

using base::fail;

// From this average size per block on the leaders' copies cost more than messages from member to
// member.
constexpr size_t kListedBlockBytes = size_t{2} << 10;

void append(std::vector<char>& to, const void* from, size_t bytes) {
  const auto* const first = static_cast<const char*>(from);
  to.insert(to.end(), first, first + bytes);
}

// Takes the next size off a list.
uint64_t next_size(const char*& list) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, list, sizeof bytes);
  list += sizeof bytes;
  return bytes;
}

// Limits a size, so that a sum of sizes cannot overflow. The limit is larger than any message.
uint64_t limited(uint64_t bytes) { return std::min<uint64_t>(bytes, kMostRowsBytes); }

// The bytes that each of several receivers gets. `sizes` are listed sender by sender.
std::vector<uint64_t> sums_of(const char* sizes, size_t senders, size_t receivers) {
  std::vector<uint64_t> sums(receivers, 0);
  for (size_t i = 0; i < senders * receivers; ++i) sums[i % receivers] += limited(next_size(sizes));
  return sums;
}

uint64_t total_of(const std::vector<uint64_t>& sums) {
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

class InterHost::Alltoallv {
 public:
  Alltoallv(InterHost& inter_host, const Blocks& in_blocks, const Blocks& out_blocks)
      : inter_host_(inter_host),
        in_blocks_(in_blocks),
        out_blocks_(out_blocks),
        shares_(inter_host.leads() ? inter_host.own().size() : 0),
        by_members_(inter_host.groups_.size(), 0) {}

  mob_status_t run(const void* in, void* out);

 private:
  // The blocks that the leader has received for one member of its host.
  struct Share {
    std::vector<char> sizes;  // uint64_t
    std::vector<char> blocks;
  };

  const std::vector<Group>& groups() const { return inter_host_.groups_; }
  const Group& own() const { return inter_host_.own(); }
  bool has_sizes(size_t group) const {
    return group != inter_host_.own_ && (own().size() != 1 || groups()[group].size() != 1);
  }
  bool has_message(size_t group) const { return has_sizes(group) && by_members_[group] == 0; }
  bool fits_in_message(size_t from, size_t to, uint64_t most) const;
  mob_status_t find_ways();
  mob_status_t gather_rows(const void* in);
  void send_rows(mob_status_t* status);
  mob_status_t take_row(size_t group);
  mob_status_t take_rows();
  mob_status_t share_ways(mob_status_t status, uint64_t* largest);
  mob_status_t hand_out(void* out);
  mob_status_t take_share(const char* slot, void* out) const;

  InterHost& inter_host_;
  const Blocks& in_blocks_;
  const Blocks& out_blocks_;
  // At the leader.
  std::vector<char> rows_;
  std::vector<size_t> starts_;
  std::vector<Share> shares_;
  // For each host whether its blocks go from member to member: first the blocks to that host, and
  // from take_rows() on those that come from it.
  std::vector<char> by_members_;
};

mob_status_t InterHost::alltoallv(const void* in, const Blocks& in_blocks, void* out,
                                  const Blocks& out_blocks) {
  return Alltoallv(*this, in_blocks, out_blocks).run(in, out);
}

mob_status_t InterHost::Alltoallv::run(const void* in, void* out) {
  mob_status_t status = find_ways();
  if (status == MOB_OK) status = gather_rows(in);
  // Without the sizes the other hosts cannot know which messages to expect.
  if (status != MOB_OK) inter_host_.give_up();
  if (inter_host_.leads()) send_rows(&status);
  inter_host_.send_to_members(&status, by_members_, in, in_blocks_);
  inter_host_.exchange_with_local_peers(&status, in, in_blocks_, out, out_blocks_);
  const mob_status_t handed_out = hand_out(out);
  if (status == MOB_OK) status = handed_out;
  inter_host_.receive_from_members(&status, by_members_, out, out_blocks_);
  return status;
}

// `most` is the largest number of bytes that one receiver gets. The leader there passes this many
// on to each member.
bool InterHost::Alltoallv::fits_in_message(size_t from, size_t to, uint64_t most) const {
  return most < groups()[from].size() * kListedBlockBytes &&
         most <= kMostRowsBytes / (groups().size() * groups()[to].size());
}

// Collective over the members of this host. Decides for each host how the blocks travel.
mob_status_t InterHost::Alltoallv::find_ways() {
  std::vector<uint64_t> sums;  // bytes that each member gets from this host
  for (mob_rank_t member = 0; member < inter_host_.map_.size(); ++member) {
    sums.push_back(limited(in_blocks_.size(member)));
  }
  const mob_status_t status =
      engine::fold(*inter_host_.local_team_, {FoldResult::Kind::kAll},
                   Combiner(MOB_SUM, MOB_UINT64), sums.data(), sums.data(), sums.size());
  for (size_t group = 0; group < groups().size(); ++group) {
    uint64_t most = 0;
    for (const mob_rank_t member : groups()[group]) {
      most = std::max(most, sums[static_cast<size_t>(member)]);
    }
    by_members_[group] = has_sizes(group) && fits_in_message(inter_host_.own_, group, most) ? 0 : 1;
  }
  return status;
}

// Collective over the members of this host. A row holds one member's sizes for the other hosts,
// host by host, and then its blocks that go by the leaders.
mob_status_t InterHost::Alltoallv::gather_rows(const void* in) {
  std::vector<char> row;
  for (size_t group = 0; group < groups().size(); ++group) {
    if (!has_sizes(group)) continue;
    for (const mob_rank_t member : groups()[group]) {
      const uint64_t bytes = in_blocks_.size(member);
      append(row, &bytes, sizeof bytes);
    }
  }
  for (size_t group = 0; group < groups().size(); ++group) {
    if (!has_message(group)) continue;
    for (const mob_rank_t member : groups()[group]) {
      append(row, bytes_of(in) + in_blocks_.at(member), in_blocks_.size(member));
    }
  }
  std::vector<size_t> sizes;
  if (const mob_status_t status = inter_host_.local_team_->exchange(row.size(), &sizes))
    return status;
  starts_ = starts_of(sizes);
  if (inter_host_.leads()) rows_.resize(starts_.back());
  return engine::gather_sized(*inter_host_.local_team_, 0, row.data(), row.size(), rows_.data(),
                              Blocks::listed(sizes.data(), starts_.data()),
                              *std::ranges::max_element(sizes));
}

// Called by leaders, with the rows of their hosts' members. Sends to each host the sizes, sender by
// sender, and the blocks in the same order.
void InterHost::Alltoallv::send_rows(mob_status_t* status) {
  std::vector<const char*> sizes;   // of each sender: its sizes for the next host
  std::vector<const char*> blocks;  // of each sender: its blocks for the next host
  size_t listed = 0;
  for (size_t group = 0; group < groups().size(); ++group) {
    if (has_sizes(group)) listed += groups()[group].size();
  }
  for (size_t sender = 0; *status == MOB_OK && sender < own().size(); ++sender) {
    sizes.push_back(rows_.data() + starts_[sender]);
    blocks.push_back(sizes.back() + listed * sizeof(uint64_t));
  }
  std::vector<char> message;
  for (size_t group = 0; group < groups().size(); ++group) {
    if (!has_sizes(group)) continue;
    message.clear();
    const size_t receivers = groups()[group].size();
    for (const char*& at : sizes) {
      append(message, at, receivers * sizeof(uint64_t));
      at += receivers * sizeof(uint64_t);
    }
    for (size_t sender = 0; has_message(group) && sender < sizes.size(); ++sender) {
      const char* const list = message.data() + sender * receivers * sizeof(uint64_t);
      const size_t bytes = total_of(sums_of(list, 1, receivers));
      append(message, blocks[sender], bytes);
      blocks[sender] += bytes;
    }
    inter_host_.send_outcome(status, inter_host_.leader(group), message.data(), message.size());
  }
}

// Called by leaders. Receives what send_rows() sent.
mob_status_t InterHost::Alltoallv::take_rows() {
  for (size_t group = 0; group < groups().size(); ++group) {
    if (!has_sizes(group)) continue;
    if (const mob_status_t status = take_row(group)) return status;
  }
  return MOB_OK;
}

mob_status_t InterHost::Alltoallv::take_row(size_t group) {
  const mob_rank_t leader = inter_host_.leader(group);
  TeamMessage message;
  if (const mob_status_t status = inter_host_.take("mob_alltoallv", leader, leader, &message)) {
    return status;
  }
  const size_t senders = groups()[group].size();
  const size_t receivers = own().size();
  const size_t head = senders * receivers * sizeof(uint64_t);
  if (message.count >= head) {
    const char* sizes = message.bytes.get();
    const std::vector<uint64_t> sums = sums_of(sizes, senders, receivers);
    const bool fits = fits_in_message(group, inter_host_.own_, *std::ranges::max_element(sums));
    by_members_[group] = fits ? 0 : 1;
    if (message.count - head == (fits ? total_of(sums) : 0)) {
      const char* blocks = sizes + head;
      for (size_t pair = 0; fits && pair < senders * receivers; ++pair) {
        const uint64_t bytes = next_size(sizes);
        Share& share = shares_[pair % receivers];
        append(share.sizes, &bytes, sizeof bytes);
        append(share.blocks, blocks, bytes);
        blocks += bytes;
      }
      return MOB_OK;
    }
  }
  return fail(MOB_ERR_SYSTEM,
              "mob_alltoallv: the length of the message of member %d contradicts the sizes in it",
              leader);
}

// Collective over the members of this host. The leader tells how the blocks came, and the largest
// share of one member.
mob_status_t InterHost::Alltoallv::share_ways(mob_status_t status, uint64_t* largest) {
  std::vector<char> told(sizeof *largest + by_members_.size());
  std::memcpy(told.data(), largest, sizeof *largest);
  std::memcpy(told.data() + sizeof *largest, by_members_.data(), by_members_.size());
  if ((status = inter_host_.share_outcome(status, told.data(), told.size()))) return status;
  std::memcpy(largest, told.data(), sizeof *largest);
  std::memcpy(by_members_.data(), told.data() + sizeof *largest, by_members_.size());
  return MOB_OK;
}

// Collective over the members of this host. The leader receives for its host and gives each member
// its share: the sizes of its blocks, then the blocks, sender by sender.
mob_status_t InterHost::Alltoallv::hand_out(void* out) {
  mob_status_t status = inter_host_.leads() ? take_rows() : MOB_OK;
  // No member of this host knows which messages are still to come.
  if (status != MOB_OK) inter_host_.give_up();
  uint64_t largest = 0;
  for (const Share& share : shares_) {
    largest = std::max<uint64_t>(largest, share.sizes.size() + share.blocks.size());
  }
  if ((status = share_ways(status, &largest))) return status;
  std::vector<char> slots(shares_.size() * largest);
  for (size_t peer = 0; peer < shares_.size(); ++peer) {
    char* const to = std::ranges::copy(shares_[peer].sizes, slots.data() + peer * largest).out;
    std::ranges::copy(shares_[peer].blocks, to);
  }
  std::vector<char> slot(largest);
  status = engine::scatter(*inter_host_.local_team_, 0, slots.data(), slot.data(), largest);
  return status != MOB_OK ? status : take_share(slot.data(), out);
}

mob_status_t InterHost::Alltoallv::take_share(const char* slot, void* out) const {
  size_t listed = 0;
  for (size_t group = 0; group < groups().size(); ++group) {
    if (has_message(group)) listed += groups()[group].size();
  }
  const char* sizes = slot;
  const char* from = slot + listed * sizeof(uint64_t);
  mob_status_t status = MOB_OK;
  for (size_t group = 0; group < groups().size(); ++group) {
    if (!has_message(group)) continue;
    for (const mob_rank_t member : groups()[group]) {
      const uint64_t bytes = next_size(sizes);
      if (bytes == out_blocks_.size(member)) {
        copy_block(bytes_of(out) + out_blocks_.at(member), from, bytes);
      } else if (status == MOB_OK) {
        status = fail(MOB_ERR_ARGUMENT,
                      "mob_alltoallv: member %d passes %zu bytes but member %d expects %zu", member,
                      static_cast<size_t>(bytes), inter_host_.rank_, out_blocks_.size(member));
      }
      from += bytes;
    }
  }
  return status;
}

}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/rounds.h"

#include <algorithm>

#include "base/settings.h"
#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"
#include "engine/team/grid_barrier.h"
#include "os/cpu/topology.h"

namespace mobius::engine {
namespace {

using base::MeetBy;

// Up to this size each member reads the flags of all others: one cache miss, and no line that all
// write. Larger teams read fewer flags in two steps. Where members share processors, one counter
// costs less work.
constexpr mob_rank_t kMostFlags = 16;

// The own line is prefetched for this many rounds ahead: further ahead than any other member can
// be.
constexpr uint32_t kFetchAhead = 3;

// A reader fetches what is written so many rounds later.
constexpr uint32_t kReadAhead = 2;
static_assert(kReadAhead < kRoundLines / 2);

// A row's flag lies beside the line that was in use so many rounds ago.
constexpr uint32_t kRowBehind = 2;

// Bulk memory of up to so many bytes is prefetched, too, for the next round.
constexpr size_t kFetchedBytes = 512;

// Ends a wait for members of a team when one of them cannot come any more. The death of any member
// ends the wait, because an awaited member may wait for the dead one. A member leaves when its part
// is done, so leaving ends the wait only if that member itself is awaited.
template <typename IsMissing>
class MembersWatch final : public os::Watch {
 public:
  MembersWatch(const TeamServices& services, const TeamMap& map, const TeamHeader::Meeting& header,
               IsMissing is_missing)
      : services_(services), map_(map), header_(header), is_missing_(is_missing) {}

  mob_status_t look() override {
    loss_ = find();
    return loss_ ? fail_for(services_, loss_) : MOB_OK;
  }
  const TeamFailure& loss() const { return loss_; }

 private:
  TeamFailure find() const {
    if (const TeamFailure told = header_.loss.load(std::memory_order_relaxed)) return told;
    for (mob_rank_t i = 0; i < map_.size(); ++i) {
      const mob_rank_t rank = map_.world_rank(i);
      if (services_.peers.is_dead(rank)) return {TeamFailure::Kind::kDead, rank};
      if (is_missing_(i)) return {TeamFailure::Kind::kLeft, rank};
    }
    return {};
  }

  const TeamServices& services_;
  const TeamMap& map_;
  const TeamHeader::Meeting& header_;
  const IsMissing is_missing_;  // whether a member is awaited and has left
  TeamFailure loss_;
};

// How the members of a team on one host meet. All members get the same answer.
MeetBy meet_by(const TeamServices& services, const TeamMap& map) {
  const MeetBy wanted = services.settings.meet_by();
  if (wanted != MeetBy::kAuto) return wanted;
  std::vector<mob_rank_t> members;
  for (mob_rank_t i = 0; i < map.size(); ++i) {
    members.push_back(services.peers.host_index(map.world_rank(i)));
  }
  if (services.peers.host().room_for(members) == os::Room::kCrowded) return MeetBy::kCount;
  return map.size() <= kMostFlags ? MeetBy::kFlags : MeetBy::kGrid;
}

// Between a change and a check for sleepers, where those that wait for it nap first
// (os::Wakeup::kUnfenced). A fence instead would wait until the other processor gives up the cache
// line that was written.
void keep_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

template <typename Done>
bool comes_within(uint64_t ns, Done done) {
  constexpr int kLooks = 64;  // per look at the clock
  const uint64_t end = os::now_ns() + ns;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      os::relax();
    }
  } while (os::now_ns() < end);
  return false;
}

}  // namespace

Rounds::Rounds(const TeamServices& services, const TeamMap& map, mob_rank_t rank, void* area,
               Series series)
    : services_(services),
      map_(map),
      rank_(rank),
      // A team on several hosts has no rounds of its own.
      meet_by_(area != nullptr ? meet_by(services, map) : MeetBy::kCount),
      series_(series),
      area_(area),
      members_(area == nullptr
                   ? nullptr
                   : reinterpret_cast<TeamMember*>(static_cast<char*>(area) + sizeof(TeamHeader) +
                                                   kHeaderPadding)),
      first_lines_(area == nullptr ? nullptr
                                   : reinterpret_cast<char*>(members_) +
                                         static_cast<size_t>(series) * sizeof(TeamMember::Lines)) {
  if (area == nullptr) return;
  own_lines_ = &lines_of(rank);
  find_local_peers();
}

void Rounds::find_local_peers() {
  const auto local_peers_of = [&](const std::vector<mob_rank_t>& members) {
    LocalPeers result;
    for (const mob_rank_t i : members) {
      result.push_back({&lines_of(i), &services_.segment.doorbell(map_.world_rank(i))});
    }
    return result;
  };
  if (meet_by_ == MeetBy::kGrid) {
    const GridBarrier grid(map_.size(), rank_);
    local_peers_ = local_peers_of(grid.row());
    other_rows_ = local_peers_of(grid.other_rows());
    onlookers_ = local_peers_of(grid.onlookers());
  } else if (meet_by_ == MeetBy::kFlags) {
    std::vector<mob_rank_t> others;
    for (mob_rank_t i = 0; i < map_.size(); ++i) {
      if (i != rank_) others.push_back(i);
    }
    local_peers_ = local_peers_of(others);
  }
}

bool Rounds::has_left_these(mob_rank_t rank) const {
  const mob_rank_t process = map_.world_rank(rank);
  return series_ == Series::kCalls ? services_.peers.is_ending(process)
                                   : services_.peers.is_leaving(process);
}

// Members give up at different points, so the team stays broken: a round that one member left
// unfinished must not complete the next call of another.
template <typename Done, typename Lacks>
mob_status_t Rounds::wait_until(Done done, Lacks lacks, os::Wakeup wakeup) {
  // In this order: a member that leaves has done its part before, or never does it.
  MembersWatch watch(services_, map_, header(),
                     [&](mob_rank_t member) { return has_left_these(member) && lacks(member); });
  const mob_status_t status = services_.waiter.wait_until(done, &watch, wakeup);
  if (status != MOB_OK) {
    broken_ = true;
    loss_ = watch.loss();
  }
  return status;
}

mob_status_t Rounds::begin(Role role, Bulk bulk, size_t bytes) {
  if (broken_) [[unlikely]] {
    return refuse_for(services_, loss());
  }
  ++round_;
  posted_ = false;
  uint32_t before = round_ - kRoundLines;  // the round that used this line
  if (bulk != Bulk::kNone) {
    before = take_place(bulk, bytes);
  } else {
    used_[round_ % kRoundLines] = {};
  }
  return role == Role::kWrites ? await_done(before) : MOB_OK;
}

// Places alternate between the two halves, so that no place, whatever its size, is the one before:
// a member waits for readers of a round only two rounds later or more (end()). Nor are they
// adjacent, because processors prefetch beyond a place that is read and would take lines from the
// member that writes there. Members that meet are at most one round apart, so one place in each
// half is enough and stays in the nearest caches. A small place that is prefetched for writing is
// better one that no member has read for long.
Rounds::Place Rounds::place_of(size_t turn, Bulk bulk, size_t bytes) {
  constexpr size_t kLine = 64;
  size_t places = 1;  // in a half
  if (bulk == Bulk::kNext || bytes <= kFetchedBytes) {
    places = std::clamp<size_t>(kBulkBytes / std::max(bytes, kLine), 1, kRoundLines / 2);
  }
  const size_t in_half = turn / 2 % places * (kBulkBytes / places / kLine * kLine);
  const size_t begin = turn % 2 * kBulkBytes + in_half;
  return {begin, begin + bytes};
}

// Prefetches the place where a round like this one, with little bulk memory, would write next.
// Other members ended reading it long ago.
void Rounds::fetch_next_place() const {
  const Place& used = used_[round_ % kRoundLines];
  const size_t bytes = used.end - used.begin;
  if (bytes == 0 || bytes > kFetchedBytes) return;
  const unsigned char* const next = member(rank_).bulk + place_of(turn_, Bulk::kMet, bytes).begin;
  for (size_t at = 0; at < bytes; at += 64) os::prefetch_to_write(next + at);
}

// A writer that is ahead has written them already. Then two cache lines of a round and those of the
// next rounds travel at once, instead of one after the other. One line alone gains nothing.
void Rounds::fetch_of_later_round(mob_rank_t writer) const {
  const Place& used = used_[round_ % kRoundLines];
  const size_t bytes = used.end - used.begin;
  if (bytes == 0 || bytes > kFetchedBytes) return;
  os::prefetch_to_read(&lines_of(writer).lines[(round_ + kReadAhead) % kRoundLines]);
  const Place later = place_of(turn_ + kReadAhead - 1, Bulk::kNext, bytes);
  const unsigned char* const place = member(writer).bulk + later.begin;
  for (size_t at = 0; at < bytes; at += 64) os::prefetch_to_read(place + at);
}

// Returns the last round that used the line or any part of the place.
uint32_t Rounds::take_place(Bulk bulk, size_t bytes) {
  uint32_t before = round_ - kRoundLines;
  if (bulk != Bulk::kSame) {
    place_ = place_of(turn_, bulk, bytes);
    ++turn_;
    for (uint32_t back = 1; back < kRoundLines; ++back) {
      if (!used_[(round_ - back) % kRoundLines].overlaps(place_)) continue;
      before = round_ - back;
      break;
    }
  }
  used_[round_ % kRoundLines] = place_;
  return before;
}

void Rounds::give_up(const TeamFailure& loss) {
  broken_ = true;
  if (!loss_) loss_ = loss;
  TeamFailure none;
  header().loss.compare_exchange_strong(none, loss_, std::memory_order_seq_cst);
  ring_all();
}

TeamFailure Rounds::loss() const {
  return loss_ ? loss_ : header().loss.load(std::memory_order_relaxed);
}

void Rounds::post() {
  // Release pairs with the acquire in has_posted().
  own_lines_->lines[round_ % kRoundLines].round.store(round_, std::memory_order_release);
  posted_ = true;
}

void Rounds::ring_all() {
  for (mob_rank_t i = 0; i < map_.size(); ++i) {
    if (i != rank_) services_.waiter.ring_after_fence(map_.world_rank(i));
  }
}

void Rounds::tell_done_waiters() {
  if (header().done_waiters.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    ring_all();
  }
}

void Rounds::post_to(mob_rank_t reader) {
  post();
  keep_order();
  services_.waiter.ring_after_fence(map_.world_rank(reader));
  tell_done_waiters();
}

void Rounds::post_to_all() {
  post();
  keep_order();
  ring_all();
}

mob_status_t Rounds::meet(uint64_t expected_ns) {
  const mob_status_t status =
      meet_by_ == MeetBy::kCount ? meet_by_count() : meet_by_flags(expected_ns);
  // A member that posted in this round had ended the one before.
  if (status == MOB_OK) all_done_ = round_ - 1;
  return status;
}

mob_status_t Rounds::meet_by_flags(uint64_t expected_ns) {
  post();
  auto next = local_peers_.cbegin();  // those before it are known to have come
  const auto all_came = [&] {
    for (; next != local_peers_.cend(); ++next) {
      if (!has_posted(*next->lines)) return false;
    }
    return true;
  };
  // Read the flags before the fence, which waits until the own line is written: both lines then
  // travel at once.
  const bool came = all_came();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between changes and checks for sleepers
  for (const LocalPeer& peer : local_peers_) Waiter::ring_after_fence(*peer.doorbell);
  // No other member reads that line yet. When its turn comes, it is in this cache and ready to be
  // written.
  os::prefetch_to_write(&own_lines_->lines[(round_ + kFetchAhead) % kRoundLines]);
  fetch_next_place();
  if (!came && (expected_ns == 0 || !comes_within(expected_ns, all_came))) {
    if (const mob_status_t status = wait_for_those_who_come(all_came)) return status;
  }
  return other_rows_.empty() ? MOB_OK : meet_other_rows();
}

// The second step in a grid: members that read this one's row flag know that its row has come.
mob_status_t Rounds::meet_other_rows() {
  // The row flag lies beside the line of an earlier round, because processors fetch lines in pairs
  // and hardly any member reads that line any more.
  const auto row_of = [](TeamMember::Lines& lines, uint32_t round) -> std::atomic<uint32_t>& {
    return lines.lines[(round - kRowBehind) % kRoundLines].row;
  };
  // Release and acquire: all that the row's members posted comes before.
  row_of(*own_lines_, round_).store(round_, std::memory_order_release);
  auto next = other_rows_.cbegin();
  const auto all_came = [&] {
    for (; next != other_rows_.cend(); ++next) {
      if (row_of(*next->lines, round_).load(std::memory_order_acquire) != round_) return false;
    }
    return true;
  };
  const bool came = all_came();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between changes and checks for sleepers
  for (const LocalPeer& peer : onlookers_) Waiter::ring_after_fence(*peer.doorbell);
  os::prefetch_to_write(&row_of(*own_lines_, round_ + 1));
  return came ? MOB_OK : wait_for_those_who_come(all_came);
}

[[gnu::flatten]] mob_status_t Rounds::barrier() {
  mob_status_t status = begin(Role::kWrites, Bulk::kNone);
  if (status == MOB_OK) status = meet();
  end();
  return status;
}

mob_status_t Rounds::meet_by_count() {
  posted_ = true;
  TeamHeader::Meeting& shared = header();
  const uint32_t generation = shared.generation.load(std::memory_order_relaxed);
  const uint32_t before = shared.arrived.fetch_add(1, std::memory_order_seq_cst);
  if (before + 1 == static_cast<uint32_t>(map_.size())) {
    shared.arrived.store(0, std::memory_order_relaxed);
    // Release pairs with the acquire below: the reset above and all that any member wrote before it
    // came is visible to the members that go on. Sequentially consistent: also the fence between
    // changes and checks for sleepers.
    shared.generation.exchange(generation + 1, std::memory_order_seq_cst);
    ring_all();
    return MOB_OK;
  }
  tell_done_waiters();
  return wait_for_all(
      [&] { return shared.generation.load(std::memory_order_acquire) != generation; });
}

mob_status_t Rounds::await(mob_rank_t rank) {
  if (has_posted(rank)) return MOB_OK;
  return wait_until([&] { return has_posted(rank); },
                    [&](mob_rank_t member) { return member == rank && !has_posted(rank); },
                    os::Wakeup::kUnfenced);
}

mob_status_t Rounds::await_all() {
  for (mob_rank_t i = 0; i < map_.size(); ++i) {
    if (i == rank_) continue;
    if (const mob_status_t status = await(i)) return status;
  }
  return MOB_OK;
}

void Rounds::end() {
  // Release pairs with the acquire in await_done_slowly(): the data that this member read may be
  // overwritten.
  own_lines_->done.store(round_, std::memory_order_release);
  // A member that waits for a round in which this one posted does so two rounds later or more
  // (place_of()). In between this member posts, or ends a round in which it did not.
  if (posted_) return;
  keep_order();
  tell_done_waiters();
}

mob_status_t Rounds::await_done_slowly(uint32_t round) {
  mob_rank_t next = 0;  // those before it are known to be done
  uint32_t least = round_;
  const auto all_done = [&] {
    for (; next < map_.size(); ++next) {
      if (next == rank_) continue;
      const uint32_t theirs = lines_of(next).done.load(std::memory_order_acquire);
      if (static_cast<int32_t>(theirs - round) < 0) return false;
      if (static_cast<int32_t>(theirs - least) < 0) least = theirs;
    }
    return true;
  };
  if (!all_done()) {
    // A member that ends the round later, and sees the counter, rings.
    header().done_waiters.fetch_add(1, std::memory_order_seq_cst);
    const auto lacks = [&](mob_rank_t member) {
      const uint32_t theirs = lines_of(member).done.load(std::memory_order_acquire);
      return member != rank_ && static_cast<int32_t>(theirs - round) < 0;
    };
    const mob_status_t status = wait_until(all_done, lacks, os::Wakeup::kUnfenced);
    header().done_waiters.fetch_sub(1, std::memory_order_relaxed);
    if (status != MOB_OK) return status;
  }
  all_done_ = least;
  return MOB_OK;
}

}  // namespace mobius::engine

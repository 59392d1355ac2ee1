// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective/collective_tuning.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "base/settings.h"
#include "engine/common/peers.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/peer_memory.h"
#include "engine/segment/segment.h"
#include "transport/cma/cma.h"

namespace mobius::engine {

CollectiveTuning& CollectiveTuning::of(Team& team) {
  std::unique_ptr<TeamExtension>& extension = team.extension();
  if (extension == nullptr) extension = std::make_unique<CollectiveTuning>();
  return static_cast<CollectiveTuning&>(*extension);
}

mob_status_t CollectiveTuning::choose(Team& team, CollectiveKind kind, size_t bytes, Way* way) {
  if (attaching_ == Attaching::kUnknown) {
    if (const mob_status_t status = try_attaching(team, &attaching_)) return status;
  }
  const auto index = static_cast<size_t>(kind);
  const auto size = static_cast<size_t>(std::bit_width(bytes / kDirectBytes) - 1);
  AbTuner& tuner = tuners_[index][std::min(size, kSizes - 1)];
  way->attaches = attaching_ == Attaching::kAlways ||
                  (attaching_ == Attaching::kByTrial && tuner.takes_first());
  if (Silence& silence = silences_[index]; !way->attaches && silence.left != 0) {
    --silence.left;
    way->asks = false;
  }
  if (attaching_ != Attaching::kByTrial || !tuner.begins()) return MOB_OK;
  way->tuner = &tuner;
  way->begin_ns = static_cast<int64_t>(os::now_ns());
  return MOB_OK;
}

void CollectiveTuning::note_asked(CollectiveKind kind, bool lent) {
  Silence& silence = silences_[static_cast<size_t>(kind)];
  silence.left = lent ? 0 : silence.next;
  silence.next = lent ? 1 : std::min(2 * silence.next, Silence::kLongest);
}

mob_status_t CollectiveTuning::note(Team& team, const Way& way) {
  struct Said {
    int64_t begin_ns;
    int64_t end_ns;
  };
  std::vector<Said> all;
  const Said mine{way.begin_ns, static_cast<int64_t>(os::now_ns())};
  if (const mob_status_t status = team.exchange(mine, &all)) return status;
  const int64_t begin = std::ranges::max(all, {}, &Said::begin_ns).begin_ns;
  int64_t sum = 0;
  for (const Said& said : all) sum += std::max<int64_t>(said.end_ns - begin, 0);
  way.tuner->add(way.attaches, sum / team.size());
  return MOB_OK;
}

// Whether every member can read every other member's private memory. The mark proves that the right
// process was read: a process id means another process in another PID namespace.
mob_status_t CollectiveTuning::try_attaching(Team& team, Attaching* result) {
  const TeamServices& services = team.services();
  const base::Collectives wanted = services.settings.collectives();
  transport::allow_attach();
  struct Said {
    uint64_t mark;
    uint64_t at;  // address of the mark
    bool may;
    bool always;
  };
  uint64_t mark = os::now_ns() ^ static_cast<uint64_t>(services.peers.rank()) << 48;
  Said said{mark, reinterpret_cast<uintptr_t>(&mark),
            services.kernel_copy.allowed() && wanted != base::Collectives::kCopy,
            wanted == base::Collectives::kAttach};
  std::vector<Said> all;
  if (const mob_status_t status = team.exchange(said, &all)) return status;
  const bool always = std::ranges::any_of(all, &Said::always);
  said.may = std::ranges::all_of(all, &Said::may);
  for (mob_rank_t r = 0; said.may && r < team.size(); ++r) {
    const Said& other = all[static_cast<size_t>(r)];
    uint64_t seen = 0;
    said.may =
        r == team.rank() ||
        (copy_with_peer(services.segment, services.kernel_copy.allowed(team.map().world_rank(r)),
                        team.map().world_rank(r), other.at, &seen, sizeof seen, false) == 0 &&
         seen == other.mark);
  }
  // This exchange also keeps the mark alive until all have read it.
  if (const mob_status_t status = team.exchange(said, &all)) return status;
  if (!std::ranges::all_of(all, &Said::may)) {
    *result = Attaching::kNever;
  } else {
    *result = always ? Attaching::kAlways : Attaching::kByTrial;
  }
  return MOB_OK;
}

}  // namespace mobius::engine

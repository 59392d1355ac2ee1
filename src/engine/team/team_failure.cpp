// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team_failure.h"

#include <new>
#include <string>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/network/network.h"
#include "engine/team/team_services.h"

namespace mobius::engine {
namespace {

// Describes a failure. Watches a rank that only other members have found dead.
std::string text_of(const TeamServices& services, const TeamFailure& loss) {
  const std::string who = "rank " + std::to_string(loss.rank);
  switch (loss.kind) {
    case TeamFailure::Kind::kDead:
      if (services.peers.is_dead(loss.rank)) return who + " " + services.peers.fate(loss.rank);
      services.peers.watch(loss.rank);
      return who + " is lost, as another member has found (" + services.network.name_of(loss.rank) +
             ")";
    case TeamFailure::Kind::kLeft:
      return who + " leaves the job (mob_finalize) while others are in a collective call";
    case TeamFailure::Kind::kNoMemory:
      return who + " has no memory left for a collective call";
    case TeamFailure::Kind::kFailed:
      return who + " could not complete a collective call";
    case TeamFailure::Kind::kNone:
      break;
  }
  return "a collective call of it has failed";
}

mob_status_t record(const TeamServices& services, const TeamFailure& loss, const char* before,
                    const char* after) {
  try {
    return base::fail(MOB_ERR_PEER, "%s%s%s", before, text_of(services, loss).c_str(), after);
  } catch (const std::bad_alloc&) {
    return base::fail(MOB_ERR_PEER, "%srank %d is lost%s", before, loss.rank, after);
  }
}

}  // namespace

mob_status_t fail_for(const TeamServices& services, const TeamFailure& loss) {
  return record(services, loss, "", "; this collective call cannot complete");
}

mob_status_t refuse_for(const TeamServices& services, const TeamFailure& loss) {
  return record(services, loss, "this team is of no use any more: ", "");
}

}  // namespace mobius::engine

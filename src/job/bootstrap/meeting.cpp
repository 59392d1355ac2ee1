// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/meeting.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "job/control.h"
#include "job/layout.h"
#include "os/identity.h"

namespace mobius::job {
namespace {

using base::fail;

// What a process publishes first.
struct Card {
  static constexpr uint64_t kVersion = 1;

  uint64_t version = kVersion;
  os::Identity identity{};
  ReceptionAddress address{};
};

// And then: the first rank of its host.
struct Seat {
  int32_t first;
};

template <typename T>
mob_status_t publish(Directory& directory, const char* key, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  unsigned char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  return directory.publish(key, bytes);
}

template <typename T>
mob_status_t fetch(Directory& directory, mob_rank_t rank, const char* key, T* value) {
  std::vector<unsigned char> bytes;
  if (const mob_status_t status = directory.fetch(rank, key, &bytes)) return status;
  if (bytes.size() != sizeof *value) {
    return fail(MOB_ERR_SYSTEM,
                "mob_init: rank %d has published a %s of %zu bytes, not %zu; do all processes use "
                "the same libmobius?",
                rank, key, bytes.size(), sizeof *value);
  }
  std::memcpy(value, bytes.data(), sizeof *value);
  return MOB_OK;
}

class Meeting {
 public:
  Meeting(Directory& directory, const Invitation& invitation)
      : directory_(directory), invitation_(invitation) {}

  mob_status_t run(Membership* membership) {
    mob_status_t status = introduce();
    if (status == MOB_OK) status = find_host();
    if (status == MOB_OK) status = publish(directory_, "seat", Seat{first_});
    if (status == MOB_OK) status = directory_.fence();
    if (status != MOB_OK) return status;
    Handover handover;
    status = first_ == invitation_.rank ? make_segment(&handover)
                                        : take_over(line_, first_, invitation_.limit_s, &handover);
    if (status != MOB_OK) return status;
    *membership = {handover.segment, handover.pid_is_shared, secret_};
    return MOB_OK;
  }

 private:
  // Everybody's card, and the secret from rank 0.
  mob_status_t introduce() {
    mob_status_t status = reception_.open();
    if (status != MOB_OK) return status;
    card_ = {Card::kVersion, os::own_identity(), reception_.address()};
    if (invitation_.rank == 0) {
      status = make_secret(&secret_);
      if (status == MOB_OK) status = publish(directory_, "secret", secret_);
    }
    if (status == MOB_OK) status = publish(directory_, "card", card_);
    if (status == MOB_OK) status = directory_.fence();
    if (status == MOB_OK) status = fetch(directory_, 0, "secret", &secret_);
    return status;
  }

  // Only lower ranks are waited for, so there is always one that waits for nobody.
  mob_status_t find_host() {
    for (const mob_rank_t rank : invitation_.neighbours) {
      if (rank >= invitation_.rank) break;
      Card card;
      if (const mob_status_t status = fetch(directory_, rank, "card", &card)) return status;
      if (card.version != Card::kVersion || card.identity != card_.identity) continue;
      const Visit outcome =
          visit(card.address, secret_, rank, invitation_.rank, invitation_.limit_s, &line_);
      if (outcome == Visit::kFailed) return MOB_ERR_PEER;
      if (outcome == Visit::kNobodyThere) continue;
      first_ = rank;
      reception_.close();
      return MOB_OK;
    }
    first_ = invitation_.rank;
    return reception_.start(secret_, invitation_.rank, invitation_.size);
  }

  // The first of a host: who sits here has been let in, since it said so after that.
  mob_status_t make_segment(Handover* handover) {
    const std::vector<Guest> guests = reception_.stop();
    mob_status_t status = create_segment(guests, &handover->segment);
    handover->pid_is_shared = std::ranges::all_of(guests, &Guest::knows_our_pid);
    if (status != MOB_OK) {
      for (const Guest& guest : guests) turn_away(guest, mob_last_error());
      return status;
    }
    for (const Guest& guest : guests) {
      status = hand_over(guest, {handover->segment, guest.pid_is_known});
      if (status != MOB_OK) {
        close(handover->segment);
        return status;
      }
    }
    return MOB_OK;
  }

  mob_status_t create_segment(const std::vector<Guest>& guests, int* segment) {
    std::vector<int32_t> host_of_rank;
    mob_status_t status = number_hosts(&host_of_rank);
    if (status != MOB_OK) return status;
    const int32_t own = host_of_rank[static_cast<size_t>(invitation_.rank)];
    std::vector<mob_rank_t> mates;
    for (mob_rank_t rank = 0; rank < invitation_.size; ++rank) {
      if (host_of_rank[static_cast<size_t>(rank)] == own) mates.push_back(rank);
    }
    mates.erase(mates.begin());
    if (!std::ranges::equal(mates, guests, {}, {}, &Guest::rank)) {
      return fail(MOB_ERR_SYSTEM,
                  "mob_init: %zu processes say that they are on this host, %zu came", mates.size(),
                  guests.size());
    }
    const Layout layout(host_of_rank);
    return layout.hosts() == 1 ? control_create(invitation_.size, segment)
                               : control_create(layout, own, segment);
  }

  // Hosts are numbered in the order of their first ranks.
  mob_status_t number_hosts(std::vector<int32_t>* host_of_rank) {
    int32_t hosts = 0;
    for (mob_rank_t rank = 0; rank < invitation_.size; ++rank) {
      Seat seat{};
      if (const mob_status_t status = fetch(directory_, rank, "seat", &seat)) return status;
      if (seat.first < 0 || seat.first > rank) {
        return fail(MOB_ERR_SYSTEM, "mob_init: rank %d says it is on the host of rank %d", rank,
                    seat.first);
      }
      host_of_rank->push_back(
          seat.first == rank ? hosts++ : (*host_of_rank)[static_cast<size_t>(seat.first)]);
    }
    return MOB_OK;
  }

  Directory& directory_;
  const Invitation& invitation_;
  Reception reception_;
  Card card_;
  Secret secret_{};
  mob_rank_t first_ = -1;  // of this host
  Line line_;              // to it
};

}  // namespace

mob_status_t meet(Directory& directory, const Invitation& invitation, Membership* membership) {
  if (invitation.size > kMostRanks) {
    return fail(MOB_ERR_ARGUMENT, "mob_init: a job can have %d processes, not %d", kMostRanks,
                invitation.size);
  }
  return Meeting(directory, invitation).run(membership);
}

}  // namespace mobius::job

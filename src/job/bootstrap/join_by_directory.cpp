// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/join_by_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "job/control.h"
#include "job/layout.h"
#include "os/process/identity.h"

namespace mobius::job {
namespace {

using base::fail;

// Published first by every process: where its segment server listens, and what must be equal for
// two processes to be on one host.
struct Contact {
  static constexpr uint64_t kVersion = 1;

  uint64_t version = kVersion;
  os::Identity identity{};
  ServerAddress address{};
};

// Published second: the first rank of the process' host.
struct HostChoice {
  int32_t first;
};

// A byte for the version, then any number of os::Contact.
constexpr const char* kContactsKey = "networks";
constexpr unsigned char kContactsVersion = 1;
static_assert(1 + os::kMostContacts * sizeof(os::Contact) <= kDirectoryValueBytes);

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

class DirectoryJoin {
 public:
  DirectoryJoin(Directory& directory, const JoinRequest& request)
      : directory_(directory), request_(request) {}

  mob_status_t run(Membership* membership) {
    mob_status_t status = exchange_contacts();
    if (status == MOB_OK) status = find_host();
    if (status == MOB_OK) status = publish(directory_, "host", HostChoice{first_});
    if (status == MOB_OK && first_ == request_.rank) status = publish_network_contacts();
    if (status == MOB_OK) status = directory_.fence();
    if (status != MOB_OK) return status;
    SegmentOffer offer;
    status = first_ == request_.rank
                 ? make_segment(&offer)
                 : receive_segment(connection_, first_, request_.limit_s, &offer);
    if (status != MOB_OK) return status;
    *membership = {offer.segment, offer.pid_is_shared, secret_};
    return MOB_OK;
  }

 private:
  // Exchanges the contacts of all processes and the secret, which rank 0 makes.
  mob_status_t exchange_contacts() {
    mob_status_t status = server_.open();
    if (status != MOB_OK) return status;
    contact_ = {Contact::kVersion, os::own_identity(), server_.address()};
    if (request_.secret != nullptr) {
      secret_ = *request_.secret;
    } else if (request_.rank == 0) {
      status = make_secret(&secret_);
      if (status == MOB_OK) status = publish(directory_, "secret", secret_);
    }
    if (status == MOB_OK) status = publish(directory_, "contact", contact_);
    if (status == MOB_OK) status = directory_.fence();
    if (status != MOB_OK || request_.secret != nullptr) return status;
    return fetch(directory_, 0, "secret", &secret_);
  }

  mob_status_t publish_network_contacts() {
    std::vector<unsigned char> bytes = {kContactsVersion};
    const auto* first = reinterpret_cast<const unsigned char*>(request_.contacts.data());
    bytes.insert(bytes.end(), first, first + request_.contacts.size() * sizeof(os::Contact));
    return directory_.publish(kContactsKey, bytes);
  }

  // A process waits for lower ranks only, so there is always one that waits for nobody.
  mob_status_t find_host() {
    for (const mob_rank_t rank : request_.neighbours) {
      if (rank >= request_.rank) break;
      Contact contact;
      if (const mob_status_t status = fetch(directory_, rank, "contact", &contact)) return status;
      if (contact.version != Contact::kVersion || contact.identity != contact_.identity) continue;
      const JoinOutcome outcome = join_segment_server(contact.address, secret_, rank, request_.rank,
                                                      request_.limit_s, &connection_);
      if (outcome == JoinOutcome::kFailed) return MOB_ERR_PEER;
      if (outcome == JoinOutcome::kNobodyThere) continue;
      first_ = rank;
      server_.close();
      return MOB_OK;
    }
    first_ = request_.rank;
    return server_.start(secret_, request_.rank, request_.size);
  }

  // Called by the first process of a host after the second fence, so every process that names this
  // one as the first of its host has been admitted already.
  mob_status_t make_segment(SegmentOffer* offer) {
    const std::vector<SegmentClient> clients = server_.stop();
    mob_status_t status = create_segment(clients, &offer->segment);
    offer->pid_is_shared = std::ranges::all_of(clients, &SegmentClient::knows_our_pid);
    if (status != MOB_OK) {
      for (const SegmentClient& client : clients) send_refusal(client, mob_last_error());
      return status;
    }
    for (const SegmentClient& client : clients) {
      status = send_segment(client, {offer->segment, client.pid_is_known});
      if (status != MOB_OK) {
        close(offer->segment);
        return status;
      }
    }
    return MOB_OK;
  }

  mob_status_t create_segment(const std::vector<SegmentClient>& clients, int* segment) {
    std::vector<int32_t> host_of_rank;
    mob_status_t status = number_hosts(&host_of_rank);
    if (status != MOB_OK) return status;
    const int32_t own = host_of_rank[static_cast<size_t>(request_.rank)];
    std::vector<mob_rank_t> expected;
    for (mob_rank_t rank = 0; rank < request_.size; ++rank) {
      if (host_of_rank[static_cast<size_t>(rank)] == own) expected.push_back(rank);
    }
    expected.erase(expected.begin());
    if (!std::ranges::equal(expected, clients, {}, {}, &SegmentClient::rank)) {
      return fail(MOB_ERR_SYSTEM,
                  "mob_init: %zu processes name this host as theirs, but %zu have connected to it",
                  expected.size(), clients.size());
    }
    const Layout layout(host_of_rank);
    return layout.hosts() == 1 ? control_create(request_.size, segment)
                               : control_create(layout, own, segment);
  }

  // Numbers the hosts in the order of their first ranks.
  mob_status_t number_hosts(std::vector<int32_t>* host_of_rank) {
    int32_t hosts = 0;
    for (mob_rank_t rank = 0; rank < request_.size; ++rank) {
      HostChoice choice{};
      if (const mob_status_t status = fetch(directory_, rank, "host", &choice)) return status;
      if (choice.first < 0 || choice.first > rank) {
        return fail(MOB_ERR_SYSTEM, "mob_init: rank %d names rank %d as the first of its host",
                    rank, choice.first);
      }
      host_of_rank->push_back(
          choice.first == rank ? hosts++ : (*host_of_rank)[static_cast<size_t>(choice.first)]);
    }
    return MOB_OK;
  }

  Directory& directory_;
  const JoinRequest& request_;
  SegmentServer server_;
  Contact contact_;
  Secret secret_{};
  mob_rank_t first_ = -1;  // the first rank of this host
  Connection connection_;  // to its segment server, unless this process is the first
};

}  // namespace

mob_status_t join_by_directory(Directory& directory, const JoinRequest& request,
                               Membership* membership) {
  if (request.size > kMostRanks) {
    return fail(MOB_ERR_ARGUMENT, "mob_init: a job can have %d processes, not %d", kMostRanks,
                request.size);
  }
  return DirectoryJoin(directory, request).run(membership);
}

mob_status_t fetch_contacts(Directory& directory, mob_rank_t first,
                            std::vector<os::Contact>* contacts) {
  std::vector<unsigned char> bytes;
  if (const mob_status_t status = directory.fetch(first, kContactsKey, &bytes)) return status;
  contacts->clear();
  if (bytes.empty() || bytes[0] != kContactsVersion) return MOB_OK;
  contacts->resize((bytes.size() - 1) / sizeof(os::Contact));
  if (!contacts->empty()) {
    std::memcpy(contacts->data(), bytes.data() + 1, contacts->size() * sizeof(os::Contact));
  }
  return MOB_OK;
}

}  // namespace mobius::job

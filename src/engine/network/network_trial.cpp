// SPDX-License-Identifier: BSD-3-Clause

// Opens the endpoint on a network that reaches all hosts. If hosts have several in common, they try
// one after the other: the first process of each host connects to that of the next host.

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/status.h"
#include "engine/network/common_networks.h"
#include "engine/network/network.h"
#include "job/bootstrap/join_by_directory.h"

namespace mobius::engine {
namespace {

// Only so many hosts tell of their networks, and in larger jobs none is tried: each process would
// fetch as many values.
constexpr int32_t kMostHosts = 32;
// For one connection: the kernel's second and third attempt fall into this time.
constexpr int kLimitMs = 4000;

// Published by the first process of a host after a trial; the reason follows as text.
enum class Verdict : unsigned char {
  kReached = 1,
  kNotReached,
  kFailed  // it has no endpoint; the job cannot start
};
constexpr size_t kMostReasonBytes = 200;

std::string text_of(const std::string& network) {
  return network.empty() ? "the best interface of each host" : network;
}

}  // namespace

mob_status_t Network::find_networks(std::vector<std::string>* networks) {
  const job::Job& job = peers_.job();
  *networks = {""};
  if (job.is_virtual()) return MOB_OK;
  std::vector<std::vector<os::Contact>> hosts(
      static_cast<size_t>(std::min(job.hosts(), kMostHosts)));
  for (size_t host = 0; host < hosts.size(); ++host) {
    const mob_rank_t first = job.leader_of(static_cast<int32_t>(host));
    if (const mob_status_t status = fetch_contacts(*job.directory(), first, &hosts[host])) {
      return status;
    }
  }
  *networks = networks_to_try(hosts);
  if (job.hosts() > kMostHosts) networks->resize(1);
  return MOB_OK;
}

mob_status_t Network::open_endpoint(transport::ofi::Options options,
                                    const transport::ofi::Callbacks& callbacks) {
  std::vector<std::string> networks;
  if (const mob_status_t status = find_networks(&networks)) return status;
  job::Directory& directory = *peers_.job().directory();
  std::string tried;
  for (size_t i = 0; i < networks.size(); ++i) {
    options.network = networks[i];
    mob_status_t status = endpoint_.open(options, callbacks);
    if (i > 0) address_key_ = std::string(kAddressKey) + '.' + std::to_string(i);
    if (status == MOB_OK) status = directory.publish(address_key_, endpoint_.address());
    if (networks.size() == 1) return status;
    // From here on all processes do the same, whether they have an endpoint or not: the others
    // wait for them at the fences.
    const std::string error = status == MOB_OK ? "" : mob_last_error();
    static constexpr unsigned char kNone[] = {0};
    if (status != MOB_OK) static_cast<void>(directory.publish(address_key_, kNone));
    bool reached = false;
    std::string reason;
    if (const mob_status_t agreed = try_network(i, error, &reached, &reason)) return agreed;
    if (status != MOB_OK && reached) return base::fail(status, "%s", error.c_str());
    if (reached) return MOB_OK;
    endpoint_.close();
    tried += (tried.empty() ? "" : "; ") + text_of(networks[i]) + ": " + reason;
    base::log(base::LogLevel::kInfo, "network %s is not used: %s", text_of(networks[i]).c_str(),
              reason.c_str());
  }
  return base::fail(MOB_ERR_SYSTEM,
                    "no network was found that reaches all hosts of the job (tried: %s); name one "
                    "in MOBIUS_INTERFACE, the same subnet on all hosts",
                    tried.c_str());
}

// Collective over the job. `error`: why this process has no endpoint; "" if it has one. `*reached`
// is the same everywhere, and true also if the job cannot start for another reason.
mob_status_t Network::try_network(size_t number, const std::string& error, bool* reached,
                                  std::string* reason) {
  const job::Job& job = peers_.job();
  job::Directory& directory = *job.directory();
  if (const mob_status_t status = directory.fence()) return status;
  const std::string key = "mobius-trial." + std::to_string(number);
  if (peers_.rank() == job.leader_of(job.own_host())) {
    Verdict verdict = Verdict::kReached;
    std::string text = error;
    std::vector<unsigned char> next;
    if (!error.empty()) {
      verdict = Verdict::kFailed;
    } else {
      const mob_rank_t peer = job.leader_of((job.own_host() + 1) % job.hosts());
      if (const mob_status_t status = directory.fetch(peer, address_key_, &next)) return status;
      if (const int problem = endpoint_.try_address(next, kLimitMs)) {
        verdict = Verdict::kNotReached;
        text = endpoint_.description().address + " does not reach " + endpoint_.text_of(next) +
               ": " + std::strerror(problem);
      }
    }
    text.resize(std::min(text.size(), kMostReasonBytes));
    std::vector<unsigned char> value = {static_cast<unsigned char>(verdict)};
    value.insert(value.end(), text.begin(), text.end());
    if (const mob_status_t status = directory.publish(key, value)) return status;
  }
  if (const mob_status_t status = directory.fence()) return status;
  *reached = true;
  for (int32_t host = 0; host < job.hosts(); ++host) {
    std::vector<unsigned char> value;
    if (const mob_status_t status = directory.fetch(job.leader_of(host), key, &value)) {
      return status;
    }
    const auto verdict = static_cast<Verdict>(value.empty() ? 0 : value[0]);
    if (verdict == Verdict::kFailed) {
      *reached = true;  // no other network is tried; that host's processes say why
      return MOB_OK;
    }
    if (verdict != Verdict::kNotReached || !*reached) continue;
    *reached = false;
    reason->assign(value.begin() + 1, value.end());
  }
  return MOB_OK;
}

}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/provider.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/status.h"
#include "os/file/interfaces.h"

namespace mobius::transport::ofi {
namespace {

using base::fail;
using os::better;
using os::host_interfaces;
using os::Interface;
using os::ip_text;
using os::is_loopback;
using os::parse_subnet;
using os::same_ip;
using os::Subnet;

// Best first. A provider outside this list is used only if it is named. Costs over TCP with
// libfabric 1.17 on one host (bench/network, 8 bytes, best of several rounds, relative to a plain
// socket): one way 1.01 (net) and 1.25 (tcp;ofi_rxm), write 1.06 and 1.25; memory of an endpoint 5
// and 90 MB. From 1.18 on, net is called tcp.
constexpr const char* kPreferred[] = {"cxi",           "efa", "opx", "psm3",
                                      "verbs;ofi_rxm", "tcp", "net", "tcp;ofi_rxm"};

// All registration modes that we can fulfil. FI_MR_PROV_KEY is accepted only if a provider insists:
// keys that it makes can be guessed, ours cannot.
constexpr int kMemoryModes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT;

Info make_hints(const Library& library, const std::string& provider, int memory_modes,
                bool delivery_complete) {
  Info hints(library.dupinfo(nullptr), {&library});
  if (hints == nullptr) return hints;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = memory_modes;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // We have a progress thread that sleeps on a descriptor; a second thread would only disturb.
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  if (delivery_complete) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  // The library frees it.
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

Info query(const Library& library, const std::string& provider, int memory_modes,
           bool delivery_complete, int* error) {
  const Info hints = make_hints(library, provider, memory_modes, delivery_complete);
  fi_info* found = nullptr;
  *error = hints == nullptr
               ? -FI_ENOMEM
               : library.getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found);
  return {*error == 0 ? found : nullptr, {&library}};
}

std::string provider_of(const fi_info* info) { return info->fabric_attr->prov_name; }

// Without an adapter of its kind, psm3 uses the kernel's sockets and calls its fabric
// "TCP-192.0.2.0/24". With libfabric 2.4 a job of two processes did not end that way, and the TCP
// provider uses the same network.
bool goes_by_sockets(const fi_info* info) {
  const char* fabric = info->fabric_attr->name;
  return provider_of(info).starts_with("psm3") && fabric != nullptr &&
         (std::strncmp(fabric, "TCP", 3) == 0 || std::strncmp(fabric, "UDP", 3) == 0);
}

const sockaddr_storage* ip_address_of(const fi_info* info) {
  const bool ip = info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
                  info->addr_format == FI_SOCKADDR_IN6;
  return ip ? static_cast<const sockaddr_storage*>(info->src_addr) : nullptr;
}

// The interface of an entry: the host's, or one built from the entry of a domain without addresses.
Interface interface_of(const fi_info* info, const std::vector<Interface>& interfaces) {
  if (const sockaddr_storage* address = ip_address_of(info)) {
    sockaddr_storage own = {};
    std::memcpy(&own, address, std::min(info->src_addrlen, sizeof own));
    for (const Interface& interface : interfaces) {
      if (same_ip(interface.address, own)) return interface;
    }
    Interface unknown;
    unknown.name = info->domain_attr->name;
    unknown.address = own;
    unknown.loopback = is_loopback(own);
    return unknown;
  }
  Interface domain;
  domain.name = info->domain_attr->name != nullptr ? info->domain_attr->name : "";
  domain.running = true;
  domain.loopback = std::ranges::any_of(interfaces, [&](const Interface& interface) {
    return interface.loopback && interface.name == domain.name;
  });
  if (info->nic != nullptr && info->nic->link_attr != nullptr) {
    domain.speed = static_cast<long>(info->nic->link_attr->speed / 1'000'000);
    domain.running = info->nic->link_attr->state != FI_LINK_DOWN;
  }
  return domain;
}

bool is_named(const Interface& interface, const fi_info* info, const std::string& name) {
  Subnet subnet;
  if (parse_subnet(name, &subnet)) return subnet.contains(interface.address);
  return interface.name == name || name == info->domain_attr->name;
}

// Excludes libfabric's providers for processes of one host, which do not say so.
bool reaches_other_hosts(const fi_info* info) {
  const std::string provider = provider_of(info);
  return provider != "shm" && provider != "sm2";
}

bool may_be_used(const fi_info* info, const Interface& interface, const Options& options) {
  return options.allow_loopback || (reaches_other_hosts(info) && !interface.loopback);
}

struct Candidate {
  const fi_info* info;
  Interface interface;
};

// The best usable entry of one provider; the first of equals.
std::optional<Candidate> best_of(const fi_info* list, const std::string& provider,
                                 const Options& options, const std::vector<Interface>& interfaces) {
  Subnet preferred;
  const bool prefers = parse_subnet(options.network, &preferred);
  const auto is_better = [&](const Interface& a, const Interface& b) {
    if (options.prefer_loopback && a.loopback != b.loopback) return a.loopback;
    const bool a_is_in = prefers && preferred.contains(a.address);
    const bool b_is_in = prefers && preferred.contains(b.address);
    return a_is_in != b_is_in ? a_is_in : better(a, b);
  };
  std::optional<Candidate> best;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (provider_of(info) != provider) continue;
    if (options.provider.empty() && goes_by_sockets(info)) continue;
    Interface interface = interface_of(info, interfaces);
    if (!may_be_used(info, interface, options)) continue;
    const bool named = !options.interface.empty();
    if (named ? !is_named(interface, info, options.interface) : !interface.running) continue;
    if (!best || is_better(interface, best->interface)) best = {info, std::move(interface)};
  }
  return best;
}

// For one provider or, if that is "", for all.
std::string list_of_interfaces(const fi_info* list, const std::string& provider,
                               const Options& options, const std::vector<Interface>& interfaces) {
  std::string text;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (!provider.empty() && provider_of(info) != provider) continue;
    const Interface interface = interface_of(info, interfaces);
    if (!may_be_used(info, interface, options)) continue;
    const std::string ip = ip_text(interface.address);
    const std::string one = interface.name + (ip.empty() ? "" : " (" + ip + ")") +
                            (interface.loopback ? " (loopback)" : "");
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : ", ") + one;
  }
  return text.empty() ? "none" : text;
}

std::string list_of_providers(const fi_info* list) {
  std::string text;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    const std::string one = "'" + provider_of(info) + "'";
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : ", ") + one;
  }
  return text.empty() ? "none" : text;
}

constexpr const char* kAllDown =
    "this host has none, except the loopback, that is up and has a carrier and an address (`ip "
    "address` shows them; `ip link set NAME up` sets one up)";

const char* what_to_install(const std::string& provider) {
  if (provider.starts_with("verbs")) {
    return "it needs an RDMA adapter and its driver (Debian: apt-get install ibverbs-providers "
           "rdma-core; ibv_devinfo must list a port that is ACTIVE)";
  }
  if (provider.starts_with("efa")) return "it needs an Elastic Fabric Adapter and AWS' EFA package";
  if (provider.starts_with("cxi")) return "it needs a Slingshot adapter and HPE's libfabric";
  if (provider.starts_with("psm3")) return "it needs a libfabric built with psm3, and its adapter";
  if (provider.starts_with("opx")) return "it needs an Omni-Path adapter and the hfi1 driver";
  if (provider == "tcp") return "before libfabric 1.18 it is called net: MOBIUS_PROVIDER=net";
  if (provider == "net") return "since libfabric 1.18 it is called tcp: MOBIUS_PROVIDER=tcp";
  if (provider == "tcp;ofi_rxm") {
    return "since libfabric 2, 'tcp' works without ofi_rxm: MOBIUS_PROVIDER=tcp, or leave it "
           "unset for the best provider";
  }
  return "`fi_info` (Debian: apt-get install libfabric-bin) shows what this host has";
}

// Asks for the same entry of the same provider with the fewest demands and the most capabilities.
mob_status_t refine(const Library& library, const Candidate& candidate, Choice* choice) {
  const std::string provider = provider_of(candidate.info);
  for (const bool delivery_complete : {true, false}) {
    for (const int modes : {kMemoryModes, kMemoryModes | FI_MR_PROV_KEY}) {
      int error = 0;
      Info list = query(library, provider, modes, delivery_complete, &error);
      for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
        const bool same =
            provider_of(info) == provider &&
            std::strcmp(info->domain_attr->name, candidate.info->domain_attr->name) == 0 &&
            info->src_addrlen == candidate.info->src_addrlen &&
            (info->src_addrlen == 0 ||
             std::memcmp(info->src_addr, candidate.info->src_addr, info->src_addrlen) == 0);
        if (!same) continue;
        choice->info = Info(library.dupinfo(info), {&library});
        if (choice->info == nullptr) {
          return fail(MOB_ERR_MEMORY, "no memory for the description of provider %s",
                      provider.c_str());
        }
        choice->info->tx_attr->op_flags = 0;
        choice->delivery_complete = delivery_complete;
        return MOB_OK;
      }
    }
  }
  return fail(MOB_ERR_SYSTEM, "provider %s describes interface %s differently at each request",
              provider.c_str(), candidate.info->domain_attr->name);
}

}  // namespace

mob_status_t choose(const Library& library, const Options& options, Choice* choice) {
  int error = 0;
  const Info all = query(library, "", kMemoryModes | FI_MR_PROV_KEY, false, &error);
  const std::vector<Interface> interfaces = host_interfaces();
  if (!options.provider.empty()) {
    const auto found = best_of(all.get(), options.provider, options, interfaces);
    if (found) return refine(library, *found, choice);
    bool offered = false;
    for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
      offered = offered || provider_of(info) == options.provider;
    }
    if (!offered) {
      return fail(MOB_ERR_SETTING,
                  "MOBIUS_PROVIDER='%s': %s offers no such provider here (it offers %s); %s",
                  options.provider.c_str(), library.version_text().c_str(),
                  list_of_providers(all.get()).c_str(), what_to_install(options.provider));
    }
    const std::string usable = list_of_interfaces(all.get(), options.provider, options, interfaces);
    if (options.interface.empty()) {
      return fail(MOB_ERR_SETTING, "provider %s has no interface to other hosts: %s",
                  options.provider.c_str(), kAllDown);
    }
    if (usable == "none") {
      return fail(MOB_ERR_SETTING,
                  "provider %s has no interface '%s' to other hosts, nor another one; name another "
                  "provider in MOBIUS_PROVIDER (%s), or no interface in MOBIUS_INTERFACE",
                  options.provider.c_str(), options.interface.c_str(),
                  list_of_providers(all.get()).c_str());
    }
    return fail(
        MOB_ERR_SETTING,
        "provider %s has no interface '%s' to other hosts (it has: %s); name one of these in "
        "MOBIUS_INTERFACE, by name, address or subnet",
        options.provider.c_str(), options.interface.c_str(), usable.c_str());
  }
  for (const char* provider : kPreferred) {
    const auto found = best_of(all.get(), provider, options, interfaces);
    if (found) return refine(library, *found, choice);
  }
  if (all == nullptr) {
    return fail(MOB_ERR_SYSTEM,
                "%s has no provider for reliable messages and remote memory access here (%s); %s",
                library.version_text().c_str(), library.text_of_error(error).c_str(),
                what_to_install(""));
  }
  if (options.interface.empty()) {
    return fail(MOB_ERR_SYSTEM, "no provider of %s (%s) has an interface to other hosts: %s",
                library.version_text().c_str(), list_of_providers(all.get()).c_str(), kAllDown);
  }
  return fail(MOB_ERR_SETTING,
              "no provider of %s (%s) has an interface '%s' to other hosts (there are: %s); "
              "name one of these in MOBIUS_INTERFACE, by name, address or subnet",
              library.version_text().c_str(), list_of_providers(all.get()).c_str(),
              options.interface.c_str(),
              list_of_interfaces(all.get(), "", options, interfaces).c_str());
}

std::string address_text(const Library& library, uint32_t format, const void* address,
                         size_t bytes) {
  sockaddr_storage ip = {};
  std::memcpy(&ip, address, std::min(bytes, sizeof ip));
  const bool is_ip = format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  if (is_ip && (ip.ss_family == AF_INET || ip.ss_family == AF_INET6)) {
    const uint16_t port =
        ntohs(ip.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(&ip)->sin_port
                                      : reinterpret_cast<const sockaddr_in6*>(&ip)->sin6_port);
    const std::string host = ip_text(ip);
    return (ip.ss_family == AF_INET ? host : "[" + host + "]") + ":" + std::to_string(port);
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    const unsigned byte = static_cast<const unsigned char*>(address)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  (void)library;
  return text;
}

}  // namespace mobius::transport::ofi

// SPDX-License-Identifier: BSD-3-Clause
#include "topology.h"

#include <map>

#include "front.h"
#include "groups.h"

namespace mobius::armci {
namespace {

// Whether memory of local peers has the same address in the caller as in its owner.
bool finds_local_peers_in_place(const char* function) {
  mob_mem_t mem = nullptr;
  check(mob_mem_alloc(1, &mem), function);
  bool in_place = true;
  for (mob_rank_t i = 0; i < mob_host_size(); ++i) {
    mob_rank_t peer = 0;
    void* address = nullptr;
    void* here = nullptr;
    check(mob_host_mate(i, &peer), function);
    check(mob_mem_address(mem, peer, 0, &address), function);
    check(mob_ptr(peer, address, &here), function);
    in_place = in_place && here == address;
  }
  check(mob_mem_free(mem), function);
  return in_place;
}

}  // namespace

Topology& topology() {
  static Topology instance;
  return instance;
}

void Topology::find(const char* function) {
  is_direct_ = finds_local_peers_in_place(function);
  mob_rank_t first = mob_rank();
  if (is_direct_) check(mob_host_mate(0, &first), function);
  std::vector<mob_rank_t> firsts(static_cast<size_t>(mob_size()));
  check(mob_allgather(MOB_TEAM_WORLD, &first, firsts.data(), sizeof first), function);
  std::map<mob_rank_t, int> numbers;
  domain_.clear();
  members_.clear();
  for (size_t proc = 0; proc < firsts.size(); ++proc) {
    const auto [at, is_new] = numbers.emplace(firsts[proc], static_cast<int>(members_.size()));
    if (is_new) members_.emplace_back();
    domain_.push_back(at->second);
    members_[static_cast<size_t>(at->second)].push_back(static_cast<int>(proc));
  }
  own_domain_ = domain_[static_cast<size_t>(mob_rank())];
}

int Topology::domain_of(int proc, const char* function) const {
  check_initialised(function);
  if (proc < 0 || static_cast<size_t>(proc) >= domain_.size()) {
    die(function, "process %d is not in 0 ... %d", proc, mob_size() - 1);
  }
  return domain_[static_cast<size_t>(proc)];
}

const std::vector<int>& Topology::members(int domain, const char* function) const {
  check_initialised(function);
  if (domain < 0) domain = domain_of(mob_rank(), function);
  if (domain >= domains()) {
    die(function, "process %d: domain %d is not in 0 ... %d", mob_rank(), domain, domains() - 1);
  }
  return members_[static_cast<size_t>(domain)];
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int armci_domain_nprocs(armci_domain_t, int id) {
  return static_cast<int>(topology().members(id, "armci_domain_nprocs").size());
}

int armci_domain_id(armci_domain_t, int glob_proc_id) {
  return topology().domain_of(glob_proc_id, "armci_domain_id");
}

int armci_domain_glob_proc_id(armci_domain_t, int id, int loc_proc_id) {
  const std::vector<int>& members = topology().members(id, "armci_domain_glob_proc_id");
  if (loc_proc_id < 0 || static_cast<size_t>(loc_proc_id) >= members.size()) {
    die("armci_domain_glob_proc_id", "process %d: domain %d has %zu processes, no number %d",
        mob_rank(), id, members.size(), loc_proc_id);
  }
  return members[static_cast<size_t>(loc_proc_id)];
}

int armci_domain_my_id(armci_domain_t) {
  return topology().domain_of(mob_rank(), "armci_domain_my_id");
}

int armci_domain_count(armci_domain_t) {
  check_initialised("armci_domain_count");
  return topology().domains();
}

int armci_domain_same_id(armci_domain_t, int proc) {
  constexpr const char* kName = "armci_domain_same_id";
  return topology().domain_of(proc, kName) == topology().domain_of(mob_rank(), kName) ? 1 : 0;
}

int PARMCI_Same_node(int proc) {
  constexpr const char* kName = "ARMCI_Same_node";
  return topology().domain_of(proc, kName) == topology().domain_of(mob_rank(), kName) ? 1 : 0;
}

int PARMCI_Uses_shm(void) {
  check_initialised("ARMCI_Uses_shm");
  return topology().is_direct() ? 1 : 0;
}

int PARMCI_Uses_shm_grp(ARMCI_Group* group) {
  groups().get(group, "ARMCI_Uses_shm_grp");
  return topology().is_direct() ? 1 : 0;
}

void PARMCI_Set_shm_limit(unsigned long) {}

ARMCI_TWIN(Same_node);
ARMCI_TWIN(Uses_shm);
ARMCI_TWIN(Uses_shm_grp);
ARMCI_TWIN(Set_shm_limit);

}  // extern "C"

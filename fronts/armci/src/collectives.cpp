// SPDX-License-Identifier: BSD-3-Clause

// Collective operations of the message interface.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "front.h"
#include "groups.h"
#include "topology.h"

namespace mobius::armci {
namespace {

const ARMCI_Group& the_world() {
  static const ARMCI_Group world = [] {
    ARMCI_Group group{};
    groups().world(&group);
    return group;
  }();
  return world;
}

struct Reduction {
  mob_type_t type;
  mob_op_t op;
  bool of_absolutes = false;
};

mob_type_t type_of(int type, const char* function) {
  static_assert(sizeof(long) == 8 && sizeof(long long) == 8);
  switch (type) {
    case ARMCI_INT:
      return MOB_INT32;
    case ARMCI_LONG:
    case ARMCI_LONG_LONG:
      return MOB_INT64;
    case ARMCI_FLOAT:
      return MOB_FLOAT;
    case ARMCI_DOUBLE:
      return MOB_DOUBLE;
    default:
      die(function, "rank %d: %d is not an element type; see armci_type_e", mob_rank(), type);
  }
}

Reduction reduction_of(const char* op, int type, const char* function) {
  static constexpr struct {
    const char* name;
    mob_op_t op;
    bool of_absolutes;
  } kOperations[] = {
      // Texts from Fortran callers have no end, so of two names with the same beginning the longer
      // comes first.
      {"+", MOB_SUM, false},     {"*", MOB_PROD, false},    {"absmax", MOB_MAX, true},
      {"absmin", MOB_MIN, true}, {"max", MOB_MAX, false},   {"min", MOB_MIN, false},
      {"land", MOB_LAND, false}, {"&&", MOB_LAND, false},   {"lor", MOB_LOR, false},
      {"||", MOB_LOR, false},    {"band", MOB_BAND, false}, {"&", MOB_BAND, false},
      {"bor", MOB_BOR, false},   {"|", MOB_BOR, false},     {"or", MOB_BOR, false},
  };
  check_not_null(op, "the operation", function, mob_rank());
  const mob_type_t elements = type_of(type, function);
  for (const auto& known : kOperations) {
    if (std::strncmp(op, known.name, std::strlen(known.name)) != 0) continue;
    if (mob_op_is_defined(known.op, elements) == 0) {
      die(function, "rank %d: operation '%s' needs integers", mob_rank(), known.name);
    }
    return {elements, known.op, known.of_absolutes};
  }
  die(function, "rank %d: '%.8s' is not an operation; see armci_msg.h", mob_rank(), op);
}

template <typename T>
void make_absolute(void* x, int n) {
  auto* values = static_cast<T*>(x);
  for (int i = 0; i < n; ++i) values[i] = std::abs(values[i]);
}

void make_absolute(mob_type_t type, void* x, int n) {
  switch (type) {
    case MOB_INT32:
      return make_absolute<int32_t>(x, n);
    case MOB_INT64:
      return make_absolute<int64_t>(x, n);
    case MOB_FLOAT:
      return make_absolute<float>(x, n);
    default:
      return make_absolute<double>(x, n);
  }
}

// With `to_root`, only the party's first process gets the result.
void combine(Party party, void* x, int n, const char* op, int type, bool to_root,
             const char* function) {
  const Reduction reduction = reduction_of(op, type, function);
  check_not_negative(n, "the number of elements", function, mob_rank());
  if (reduction.of_absolutes) make_absolute(reduction.type, x, n);
  if (party.team == MOB_TEAM_NONE) return;
  const auto count = static_cast<size_t>(n);
  check(to_root ? mob_reduce(party.team, 0, reduction.op, reduction.type, x, x, count)
                : mob_allreduce(party.team, reduction.op, reduction.type, x, x, count),
        function);
}

void combine_all(void* x, int n, const char* op, int type, const char* function) {
  combine({MOB_TEAM_WORLD}, x, n, op, type, false, function);
}

void combine_group(void* x, int n, const char* op, int type, const ARMCI_Group* group,
                   const char* function) {
  combine(party_of(SCOPE_ALL, group, function), x, n, op, type, false, function);
}

void combine_node(void* x, int n, const char* op, int type, const char* function) {
  combine(party_of(SCOPE_NODE, &the_world(), function), x, n, op, type, false, function);
}

// `root` is a rank in the job.
void broadcast(Party party, void* buffer, int bytes, int root, const char* function) {
  check_not_negative(bytes, "the number of bytes", function, root);
  if (party.team == MOB_TEAM_NONE) return;
  mob_rank_t there = -1;
  check(mob_team_translate(MOB_TEAM_WORLD, root, party.team, &there), function, root);
  if (there < 0) die(function, "the root, process %d, does not take part", root);
  check(mob_broadcast(party.team, there, buffer, static_cast<size_t>(bytes)), function, root);
}

// A record of a selection: whether it counts, then the bytes.
struct Selection {
  int type;
  bool is_minimum;
  size_t bytes;
};
constexpr size_t kSelectionHeader = 8;

template <typename T>
int compare(const char* a, const char* b) {
  T left;
  T right;
  std::memcpy(&left, a, sizeof left);
  std::memcpy(&right, b, sizeof right);
  return left < right ? -1 : right < left ? 1 : 0;
}

int compare(int type, const char* a, const char* b) {
  switch (type) {
    case ARMCI_INT:
      return compare<int>(a, b);
    case ARMCI_FLOAT:
      return compare<float>(a, b);
    case ARMCI_DOUBLE:
      return compare<double>(a, b);
    default:
      return compare<long>(a, b);
  }
}

void select(void* accumulated, const void* in, size_t count, void* argument) {
  const auto& selection = *static_cast<const Selection*>(argument);
  auto* best = static_cast<char*>(accumulated);
  const auto* other = static_cast<const char*>(in);
  for (; count > 0; --count, best += selection.bytes, other += selection.bytes) {
    if (other[0] == 0) continue;
    const int order =
        best[0] == 0 ? 0
                     : compare(selection.type, best + kSelectionHeader, other + kSelectionHeader);
    if (best[0] == 0 || (selection.is_minimum ? order > 0 : order < 0)) {
      std::memcpy(best, other, selection.bytes);
    }
  }
}

void select_one(Party party, void* x, int bytes, const char* op, int type, int contribute,
                const char* function) {
  check_not_negative(bytes, "the number of bytes", function, mob_rank());
  const size_t element = mob_type_bytes(type_of(type, function));
  if (static_cast<size_t>(bytes) < element) {
    die(function, "rank %d: a record of %d bytes has no room for an element of %zu", mob_rank(),
        bytes, element);
  }
  check_not_null(op, "the operation", function, mob_rank());
  const bool is_minimum = std::strncmp(op, "min", 3) == 0;
  if (!is_minimum && std::strncmp(op, "max", 3) != 0) {
    die(function, "rank %d: '%.8s' is not an operation; it must be 'min' or 'max'", mob_rank(), op);
  }
  if (party.team == MOB_TEAM_NONE) return;
  Selection selection{type, is_minimum, kSelectionHeader + static_cast<size_t>(bytes)};
  std::vector<char> record(selection.bytes);
  record[0] = contribute != 0 ? 1 : 0;
  std::memcpy(record.data() + kSelectionHeader, x, static_cast<size_t>(bytes));
  const mob_user_op_t operation{select, &selection, selection.bytes, 1};
  check(mob_allreduce_user(party.team, &operation, record.data(), record.data(), 1), function);
  if (record[0] != 0) std::memcpy(x, record.data() + kSelectionHeader, static_cast<size_t>(bytes));
}

void exchange(mob_team_t team, void** addresses, int n, const char* function) {
  if (n != mob_team_size(team)) {
    die(function, "rank %d: %d addresses for %d processes", mob_rank(), n, mob_team_size(team));
  }
  void* mine = addresses[mob_team_rank(team)];
  check(mob_publish(team, mine, addresses), function);
}

void meet(mob_team_t team, const char* function) { check(mob_team_barrier(team), function); }

// The members of a scope of the world, in ascending order.
std::vector<int> scope_members(int scope, const char* function) {
  std::vector<int> members;
  switch (scope) {
    case SCOPE_NODE:
      return topology().members(-1, function);
    case SCOPE_MASTERS:
      for (int domain = 0; domain < topology().domains(); ++domain) {
        members.push_back(topology().members(domain, function)[0]);
      }
      return members;
    case SCOPE_ALL:
      for (int proc = 0; proc < mob_size(); ++proc) members.push_back(proc);
      return members;
    default:
      die(function, "rank %d: %d is not a scope; see armci_scope_e", mob_rank(), scope);
  }
}

}  // namespace
}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int armci_msg_me(void) {
  check_initialised("armci_msg_me");
  return mob_rank();
}

int armci_msg_nproc(void) {
  check_initialised("armci_msg_nproc");
  return mob_size();
}

void armci_msg_abort(int code) { ARMCI_Error("armci_msg_abort", code); }

double armci_timer(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void parmci_msg_barrier(void) { meet(MOB_TEAM_WORLD, "armci_msg_barrier"); }
void parmci_msg_group_barrier(ARMCI_Group* group) {
  constexpr const char* kName = "armci_msg_group_barrier";
  meet(groups().get_mine(group, kName).team, kName);
}
__attribute__((weak, alias("parmci_msg_barrier"))) __typeof__(parmci_msg_barrier) armci_msg_barrier;
__attribute__((weak, alias("parmci_msg_group_barrier"))) __typeof__(parmci_msg_group_barrier)
    armci_msg_group_barrier;

void armci_msg_bintree(int scope, int* root, int* up, int* left, int* right) {
  constexpr const char* kName = "armci_msg_bintree";
  check_initialised(kName);
  const std::vector<int> members = scope_members(scope, kName);
  *root = members[0];
  *up = *left = *right = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] != mob_rank()) continue;
    if (i > 0) *up = members[(i - 1) / 2];
    if (2 * i + 1 < members.size()) *left = members[2 * i + 1];
    if (2 * i + 2 < members.size()) *right = members[2 * i + 2];
  }
}

void armci_msg_bcast(void* buffer, int bytes, int root) {
  broadcast({MOB_TEAM_WORLD}, buffer, bytes, root, "armci_msg_bcast");
}
void armci_msg_brdcst(void* buffer, int bytes, int root) {
  broadcast({MOB_TEAM_WORLD}, buffer, bytes, root, "armci_msg_brdcst");
}
void armci_msg_bcast_scope(int scope, void* buffer, int bytes, int root) {
  constexpr const char* kName = "armci_msg_bcast_scope";
  broadcast(party_of(scope, &the_world(), kName), buffer, bytes, root, kName);
}
void armci_msg_group_bcast_scope(int scope, void* buffer, int bytes, int root, ARMCI_Group* group) {
  constexpr const char* kName = "armci_msg_group_bcast_scope";
  broadcast(party_of(scope, group, kName), buffer, bytes, root, kName);
}
void armci_msg_clus_brdcst(void* buffer, int bytes) {
  constexpr const char* kName = "armci_msg_clus_brdcst";
  const int root = topology().members(-1, kName)[0];
  broadcast(party_of(SCOPE_NODE, &the_world(), kName), buffer, bytes, root, kName);
}

void armci_msg_reduce(void* x, int n, char* op, int type) {
  combine({MOB_TEAM_WORLD}, x, n, op, type, true, "armci_msg_reduce");
}
void armci_msg_reduce_scope(int scope, void* x, int n, char* op, int type) {
  constexpr const char* kName = "armci_msg_reduce_scope";
  combine(party_of(scope, &the_world(), kName), x, n, op, type, true, kName);
}

void armci_msg_sel(void* x, int bytes, char* op, int type, int contribute) {
  select_one({MOB_TEAM_WORLD}, x, bytes, op, type, contribute, "armci_msg_sel");
}
void armci_msg_sel_scope(int scope, void* x, int bytes, char* op, int type, int contribute) {
  constexpr const char* kName = "armci_msg_sel_scope";
  select_one(party_of(scope, &the_world(), kName), x, bytes, op, type, contribute, kName);
}

void armci_msg_gop_scope(int scope, void* x, int n, char* op, int type) {
  constexpr const char* kName = "armci_msg_gop_scope";
  combine(party_of(scope, &the_world(), kName), x, n, op, type, false, kName);
}
void armci_msg_group_gop_scope(int scope, void* x, int n, char* op, int type, ARMCI_Group* group) {
  constexpr const char* kName = "armci_msg_group_gop_scope";
  combine(party_of(scope, group, kName), x, n, op, type, false, kName);
}

void armci_msg_igop(int* x, int n, char* op) { combine_all(x, n, op, ARMCI_INT, "armci_msg_igop"); }
void armci_msg_lgop(long* x, int n, char* op) {
  combine_all(x, n, op, ARMCI_LONG, "armci_msg_lgop");
}
void armci_msg_llgop(long long* x, int n, char* op) {
  combine_all(x, n, op, ARMCI_LONG_LONG, "armci_msg_llgop");
}
void armci_msg_fgop(float* x, int n, char* op) {
  combine_all(x, n, op, ARMCI_FLOAT, "armci_msg_fgop");
}
void armci_msg_dgop(double* x, int n, char* op) {
  combine_all(x, n, op, ARMCI_DOUBLE, "armci_msg_dgop");
}
void armci_msg_group_igop(int* x, int n, char* op, ARMCI_Group* group) {
  combine_group(x, n, op, ARMCI_INT, group, "armci_msg_group_igop");
}
void armci_msg_group_lgop(long* x, int n, char* op, ARMCI_Group* group) {
  combine_group(x, n, op, ARMCI_LONG, group, "armci_msg_group_lgop");
}
void armci_msg_group_llgop(long long* x, int n, char* op, ARMCI_Group* group) {
  combine_group(x, n, op, ARMCI_LONG_LONG, group, "armci_msg_group_llgop");
}
void armci_msg_group_fgop(float* x, int n, char* op, ARMCI_Group* group) {
  combine_group(x, n, op, ARMCI_FLOAT, group, "armci_msg_group_fgop");
}
void armci_msg_group_dgop(double* x, int n, char* op, ARMCI_Group* group) {
  combine_group(x, n, op, ARMCI_DOUBLE, group, "armci_msg_group_dgop");
}
void armci_msg_clus_igop(int* x, int n, char* op) {
  combine_node(x, n, op, ARMCI_INT, "armci_msg_clus_igop");
}
void armci_msg_clus_lgop(long* x, int n, char* op) {
  combine_node(x, n, op, ARMCI_LONG, "armci_msg_clus_lgop");
}
void armci_msg_clus_llgop(long long* x, int n, char* op) {
  combine_node(x, n, op, ARMCI_LONG_LONG, "armci_msg_clus_llgop");
}
void armci_msg_clus_fgop(float* x, int n, char* op) {
  combine_node(x, n, op, ARMCI_FLOAT, "armci_msg_clus_fgop");
}
void armci_msg_clus_dgop(double* x, int n, char* op) {
  combine_node(x, n, op, ARMCI_DOUBLE, "armci_msg_clus_dgop");
}

void armci_exchange_address(void** ptr_ar, int n) {
  check_not_null(ptr_ar, "the array of addresses", "armci_exchange_address", mob_rank());
  exchange(MOB_TEAM_WORLD, ptr_ar, n, "armci_exchange_address");
}
void armci_exchange_address_grp(void** ptr_ar, int n, ARMCI_Group* group) {
  constexpr const char* kName = "armci_exchange_address_grp";
  check_not_null(ptr_ar, "the array of addresses", kName, mob_rank());
  exchange(groups().get_mine(group, kName).team, ptr_ar, n, kName);
}

}  // extern "C"

// SPDX-License-Identifier: BSD-3-Clause

// Collective calls of single values, as Berkeley UPC has them.

#include <bupc_collectivev.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives.h"
#include "front.h"

namespace mobius::upc {
namespace {

// What the calls of bupc_collectivev.h return; the next call may use it again.
void* result_of(size_t bytes) {
  static std::vector<long double> memory;
  memory.resize((bytes + sizeof(long double) - 1) / sizeof(long double) + 1);
  return memory.data();
}

void check_root(int root, const char* call) {
  check_started(call);
  if (root < -1 || root >= threads()) {
    die(call, "the root is %d; there are threads 0 to %d", root, threads() - 1);
  }
}

template <typename T>
void combine_values(const char* values, int count, upc_op_t op, void* out, const char* call) {
  T result;
  std::memcpy(&result, values, sizeof result);
  for (int i = 1; i < count; ++i) {
    T next;
    std::memcpy(&next, values + static_cast<size_t>(i) * sizeof next, sizeof next);
    if (!combine(op, &result, next)) die(call, "op 0x%lx is not defined for the type", op);
  }
  std::memcpy(out, &result, sizeof result);
}

void combine_values(const char* values, int count, size_t bytes, int kind, upc_op_t op, void* out,
                    const char* call) {
  switch (kind * 100 + static_cast<int>(bytes)) {
    case 1:
      return combine_values<uint8_t>(values, count, op, out, call);
    case 2:
      return combine_values<uint16_t>(values, count, op, out, call);
    case 4:
      return combine_values<uint32_t>(values, count, op, out, call);
    case 8:
      return combine_values<uint64_t>(values, count, op, out, call);
    case 101:
      return combine_values<int8_t>(values, count, op, out, call);
    case 102:
      return combine_values<int16_t>(values, count, op, out, call);
    case 104:
      return combine_values<int32_t>(values, count, op, out, call);
    case 108:
      return combine_values<int64_t>(values, count, op, out, call);
    case 204:
      return combine_values<float>(values, count, op, out, call);
    case 208:
      return combine_values<double>(values, count, op, out, call);
    case 216:
      return combine_values<long double>(values, count, op, out, call);
    default:
      die(call, "no reduction of a type of %zu bytes", bytes);
  }
}

std::vector<char> gather_all(const void* value, size_t bytes, const char* call) {
  std::vector<char> all(bytes * static_cast<size_t>(threads()));
  check(mob_allgather(MOB_TEAM_WORLD, value, all.data(), bytes), call);
  return all;
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void* mob_upc_value_broadcast(const void* value, size_t bytes, int root) {
  constexpr const char* kCall = "bupc_allv_broadcast";
  check_root(root, kCall);
  void* const result = result_of(bytes);
  if (mythread() == root) std::memcpy(result, value, bytes);
  check(mob_broadcast(MOB_TEAM_WORLD, root, result, bytes), kCall);
  return result;
}

void* mob_upc_value_gather(const void* value, size_t bytes, int root, void* all) {
  constexpr const char* kCall = "bupc_allv_gather";
  check_root(root, kCall);
  if ((root == mythread()) && all == nullptr) die(kCall, "the root's array is null");
  if (root == -1) {
    const std::vector<char> values = gather_all(value, bytes, kCall);
    if (all != nullptr) std::memcpy(all, values.data(), values.size());
  } else {
    check(mob_gather(MOB_TEAM_WORLD, root, value, all, bytes), kCall);
  }
  return all;
}

void* mob_upc_value_scatter(const void* all, size_t bytes, int root) {
  constexpr const char* kCall = "bupc_allv_scatter";
  check_root(root, kCall);
  if (root == mythread() && all == nullptr) die(kCall, "the root's array is null");
  void* const result = result_of(bytes);
  check(mob_scatter(MOB_TEAM_WORLD, root, all, result, bytes), kCall);
  return result;
}

void* mob_upc_value_permute(const void* value, size_t bytes, int to) {
  constexpr const char* kCall = "bupc_allv_permute";
  check_root(to, kCall);
  const std::vector<char> values = gather_all(value, bytes, kCall);
  std::vector<int> targets(static_cast<size_t>(threads()));
  check(mob_allgather(MOB_TEAM_WORLD, &to, targets.data(), sizeof to), kCall);
  void* const result = result_of(bytes);
  const auto from = std::find(targets.begin(), targets.end(), mythread());
  if (from == targets.end()) die(kCall, "no thread gives this one a value");
  std::memcpy(result, values.data() + static_cast<size_t>(from - targets.begin()) * bytes, bytes);
  return result;
}

void* mob_upc_value_reduce(const void* value, size_t bytes, int root, upc_op_t op, int kind) {
  constexpr const char* kCall = "bupc_allv_reduce";
  check_root(root, kCall);
  const std::vector<char> values = gather_all(value, bytes, kCall);
  void* const result = result_of(bytes);
  std::memset(result, 0, bytes);
  if (root == -1 || root == mythread()) {
    combine_values(values.data(), threads(), bytes, kind, op, result, kCall);
  }
  return result;
}

void* mob_upc_value_prefix_reduce(const void* value, size_t bytes, upc_op_t op, int kind) {
  constexpr const char* kCall = "bupc_allv_prefix_reduce";
  check_root(0, kCall);
  const std::vector<char> values = gather_all(value, bytes, kCall);
  void* const result = result_of(bytes);
  combine_values(values.data(), mythread() + 1, bytes, kind, op, result, kCall);
  return result;
}

}  // extern "C"

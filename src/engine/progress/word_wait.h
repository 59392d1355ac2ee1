// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Conditions on words of this process' memory that others change, and waiting for them.

#include <mobius/wait.h>

#include <cstddef>

#include "engine/progress/peer_watch.h"
#include "engine/progress/waiter.h"

namespace mobius::engine {

template <typename T>
bool compares(T seen, mob_compare_t compare, T value) {
  switch (compare) {
    case MOB_EQ:
      return seen == value;
    case MOB_NE:
      return seen != value;
    case MOB_GT:
      return seen > value;
    case MOB_GE:
      return seen >= value;
    case MOB_LT:
      return seen < value;
    case MOB_LE:
      return seen <= value;
  }
  return false;
}

// Whether `word` fulfils the condition. Acquire pairs with the ordering that its writer asked for.
template <typename T>
bool holds(const T* word, mob_compare_t compare, T value) {
  return compares(__atomic_load_n(word, __ATOMIC_ACQUIRE), compare, value);
}

// Calls `use` with a value of the word type that a checked `type` names.
template <typename Use>
decltype(auto) with_word_type(mob_type_t type, Use use) {
  switch (type) {
    case MOB_INT32:
      return use(int32_t{});
    case MOB_UINT32:
      return use(uint32_t{});
    case MOB_INT64:
      return use(int64_t{});
    default:
      return use(uint64_t{});
  }
}

// Waits until `done()`, which depends on words that others may change by plain puts. Ends with
// MOB_ERR_PEER when a process of the job has died.
mob_status_t wait_for_words(Peers& peers, Waiter& waiter, const char* call, auto done) {
  AnyPeerWatch watch(peers, call);
  return waiter.wait_until(done, &watch, os::Wakeup::kMaybe);
}

}  // namespace mobius::engine

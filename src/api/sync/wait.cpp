// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/wait.h>

#include <cstdint>

#include "api/check.h"
#include "engine/progress/word_wait.h"
#include "os/sync/waiter.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using base::fail;
using engine::Engine;

namespace {

// The size of a word type; 0 for other types.
size_t word_bytes(mob_type_t type) {
  switch (type) {
    case MOB_INT32:
    case MOB_UINT32:
      return 4;
    case MOB_INT64:
    case MOB_UINT64:
      return 8;
    default:
      return 0;
  }
}

// Names of the public functions on one word, by its type.
struct WordNames {
  const char* i4;
  const char* u4;
  const char* i8;
  const char* u8;
};

constexpr WordNames kWaits = {"mob_wait_until_i4", "mob_wait_until_u4", "mob_wait_until_i8",
                              "mob_wait_until_u8"};
constexpr WordNames kTests = {"mob_test_until_i4", "mob_test_until_u4", "mob_test_until_i8",
                              "mob_test_until_u8"};

const char* name_of(const WordNames& names, mob_type_t type) {
  switch (type) {
    case MOB_INT32:
      return names.i4;
    case MOB_UINT32:
      return names.u4;
    case MOB_INT64:
      return names.i8;
    default:
      return names.u8;
  }
}

mob_status_t check_words(const char* call, const void* words, size_t bytes, mob_compare_t compare) {
  if (const mob_status_t status = check_live(call)) return status;
  if (const mob_status_t status = check_not_null(call, words, "the word")) return status;
  if (reinterpret_cast<uintptr_t>(words) % bytes != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the word at %p is not aligned to its %zu bytes", call, words,
                bytes);
  }
  if (static_cast<unsigned>(compare) >= MOB_COMPARE_COUNT) {
    return fail(MOB_ERR_ARGUMENT, "%s: comparison %d is not one of mob_compare_t", call,
                static_cast<int>(compare));
  }
  return MOB_OK;
}

mob_status_t check_set(const char* call, const mob_wait_set_t* set) {
  if (const mob_status_t status = check_live(call)) return status;
  if (const mob_status_t status = check_not_null(call, set, "the set")) return status;
  const size_t bytes = word_bytes(set->type);
  if (bytes == 0) {
    return fail(MOB_ERR_ARGUMENT,
                "%s: words of type %d; they can be MOB_INT32, MOB_UINT32, MOB_INT64 or MOB_UINT64",
                call, static_cast<int>(set->type));
  }
  if (set->count == 0) return MOB_OK;
  if (const mob_status_t status = check_words(call, set->words, bytes, set->compare)) return status;
  if (set->count > SIZE_MAX / bytes) {
    return fail(MOB_ERR_RANGE, "%s: %zu words of %zu bytes overflow", call, set->count, bytes);
  }
  return check_not_null(call, set->values, "the list of values");
}

bool is_excluded(const mob_wait_set_t& set, size_t index) {
  return set.excluded != nullptr && set.excluded[index] != 0;
}

// The first word from `index` on that is not excluded; `count` if there is none.
size_t next_included(const mob_wait_set_t& set, size_t index) {
  while (index < set.count && is_excluded(set, index)) ++index;
  return index;
}

// A checked set whose words have type T.
template <typename T>
struct Words {
  const mob_wait_set_t& set;

  bool hold(size_t index) const {
    const T* values = static_cast<const T*>(set.values);
    return engine::holds(static_cast<const T*>(set.words) + index, set.compare,
                         values[set.one_value != 0 ? 0 : index]);
  }
  // The first word from `index` on that is not excluded and whose comparison holds; `count` if
  // there is none.
  size_t find(size_t index) const {
    for (; index < set.count; ++index) {
      if (!is_excluded(set, index) && hold(index)) break;
    }
    return index;
  }
};

// Runs a function on sets: look(words) tells whether its answer is known. If `waits`, repeats until
// it is.
template <typename Look>
mob_status_t ask(const char* call, const mob_wait_set_t* set, bool waits, Look look) {
  if (const mob_status_t status = check_set(call, set)) return status;
  return api::without_exceptions(call, [&] {
    return engine::with_word_type(set->type, [&]<typename T>(T) {
      const Words<T> words{*set};
      Engine& engine = engine::engine_at(set->words);
      if (waits)
        return engine::wait_for_words(engine.peers(), engine.waiter(), call,
                                      [&] { return look(words); });
      if (!look(words) && engine.waiter().poll()) look(words);
      return MOB_OK;
    });
  });
}

mob_status_t ask_all(const char* call, const mob_wait_set_t* set, bool waits, bool* all) {
  size_t next =
      0;  // the comparison of every word before this one has held, or the word is excluded
  return ask(call, set, waits, [&](const auto& words) {
    while ((next = next_included(*set, next)) < set->count && words.hold(next)) ++next;
    return *all = next == set->count;
  });
}

mob_status_t ask_any(const char* call, const mob_wait_set_t* set, bool waits, size_t* index) {
  if (const mob_status_t status = check_live(call)) return status;
  if (const mob_status_t status = check_not_null(call, index, "the result")) return status;
  size_t found = 0;
  const mob_status_t status = ask(call, set, waits, [&](const auto& words) {
    found = words.find(0);
    return found < set->count || next_included(*set, 0) == set->count;
  });
  if (status == MOB_OK) *index = found;
  return status;
}

mob_status_t ask_some(const char* call, const mob_wait_set_t* set, bool waits, size_t* indices,
                      size_t* found) {
  if (const mob_status_t status = check_live(call)) return status;
  if (const mob_status_t status = check_not_null(call, found, "the number found")) return status;
  if (set != nullptr && set->count != 0) {
    if (const mob_status_t status = check_not_null(call, indices, "the list of indices")) {
      return status;
    }
  }
  size_t number = 0;
  const mob_status_t status = ask(call, set, waits, [&](const auto& words) {
    number = 0;
    for (size_t i = words.find(0); i < set->count; i = words.find(i + 1)) indices[number++] = i;
    return number != 0 || next_included(*set, 0) == set->count;
  });
  if (status == MOB_OK) *found = number;
  return status;
}

}  // namespace

mob_status_t mob_wait_word_(const void* word, mob_type_t type, mob_compare_t compare,
                            uint64_t value) {
  const char* call = name_of(kWaits, type);
  if (const mob_status_t status = check_words(call, word, word_bytes(type), compare)) {
    return status;
  }
  return api::without_exceptions(call, [&] {
    return engine::with_word_type(type, [&]<typename T>(T) {
      Engine& engine = engine::engine_at(word);
      return engine::wait_for_words(engine.peers(), engine.waiter(), call, [&] {
        return engine::holds(static_cast<const T*>(word), compare, static_cast<T>(value));
      });
    });
  });
}

mob_status_t mob_test_word_(const void* word, mob_type_t type, mob_compare_t compare,
                            uint64_t value, int* done) {
  const char* call = name_of(kTests, type);
  if (const mob_status_t status = check_words(call, word, word_bytes(type), compare)) {
    return status;
  }
  if (const mob_status_t status = check_not_null(call, done, "the result")) return status;
  engine::engine_at(word).waiter().poll();
  *done = engine::with_word_type(type, [&]<typename T>(T) {
    return engine::holds(static_cast<const T*>(word), compare, static_cast<T>(value)) ? 1 : 0;
  });
  return MOB_OK;
}

mob_status_t mob_wait_until_all(const mob_wait_set_t* set) {
  bool all = false;
  return ask_all("mob_wait_until_all", set, true, &all);
}

mob_status_t mob_wait_until_any(const mob_wait_set_t* set, size_t* index) {
  return ask_any("mob_wait_until_any", set, true, index);
}

mob_status_t mob_wait_until_some(const mob_wait_set_t* set, size_t* indices, size_t* found) {
  return ask_some("mob_wait_until_some", set, true, indices, found);
}

mob_status_t mob_test_until_all(const mob_wait_set_t* set, int* done) {
  constexpr const char* kCall = "mob_test_until_all";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (const mob_status_t status = check_not_null(kCall, done, "the result")) return status;
  bool all = false;
  const mob_status_t status = ask_all(kCall, set, false, &all);
  if (status == MOB_OK) *done = all ? 1 : 0;
  return status;
}

mob_status_t mob_test_until_any(const mob_wait_set_t* set, size_t* index) {
  return ask_any("mob_test_until_any", set, false, index);
}

mob_status_t mob_test_until_some(const mob_wait_set_t* set, size_t* indices, size_t* found) {
  return ask_some("mob_test_until_some", set, false, indices, found);
}

void mob_wait_hook(void (*call)(void* argument), void* argument) {
  os::idle_hook = {call, argument};
}

mob_status_t mob_notify(mob_rank_t rank) {
  if (const mob_status_t status = api::check_rank("mob_notify", rank)) return status;
  const engine::EngineOf to = engine::engine_of(rank);
  return api::without_exceptions("mob_notify",
                                 [&] { return to.engine.notifications().notify(to.rank); });
}

mob_status_t mob_notify_wait(mob_rank_t rank, uint32_t* count) {
  constexpr const char* kCall = "mob_notify_wait";
  if (const mob_status_t status = api::check_rank(kCall, rank)) return status;
  uint32_t taken = 0;
  const engine::EngineOf from = engine::engine_of(rank);
  const mob_status_t status = api::without_exceptions(
      kCall, [&] { return from.engine.notifications().wait(kCall, from.rank, &taken); });
  if (status == MOB_OK && count != nullptr) *count = taken;
  return status;
}

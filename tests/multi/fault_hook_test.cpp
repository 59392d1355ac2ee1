// SPDX-License-Identifier: BSD-3-Clause

// Operations that the fault hook makes fail: each reports it once, by its own call or by the call
// that completes it, has changed nothing and counted nothing; the next one works. Without the hook
// none fails.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fixture.h"

using mobius_test::barrier;
using mobius_test::right_of;
using mobius_test::Shared;

namespace {

// Whether the hook makes one of two operations fail.
bool injects() {
  const char* hooks = std::getenv("MOBIUS_HOOKS");
  return hooks != nullptr &&
         std::string_view(hooks).find("fault:every=2") != std::string_view::npos;
}

constexpr size_t kWords = 8;
constexpr size_t kFaultBytes = kWords * sizeof(uint64_t);
constexpr uint64_t kValue = 5;
constexpr uint64_t kUntouched = 9;

// Origin and target memory of an operation.
struct Places {
  mob_rank_t target;
  uint64_t* words;   // of the target
  uint64_t* signal;  // of the target
  std::vector<uint64_t> local = std::vector<uint64_t>(kWords, kValue);
  std::vector<uint64_t> got = std::vector<uint64_t>(kWords, kUntouched);
  uint64_t counted = 0;
};

// The effect of an operation that works.
struct Effect {
  size_t changed = 0;  // words of the target that become kValue
  bool adds = false;   // or kValue more
  size_t got = 0;      // words that are fetched
  bool signals = false;
  bool counts = false;
};

struct HookedCall {
  const char* name;
  Effect effect;
  std::function<mob_status_t(Places&)> run;
};

mob_status_t completed(mob_status_t status, mob_handle_t* handle) {
  if (status == MOB_OK) status = mob_wait(handle);
  EXPECT_EQ(*handle, MOB_HANDLE_DONE);
  return status;
}

mob_transfer_t described(mob_kind_t kind, Places& p) {
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.rank = p.target;
  transfer.remote = p.words;
  transfer.local = kind == MOB_GET ? p.got.data() : p.local.data();
  transfer.bytes = kFaultBytes;
  transfer.type = MOB_UINT64;
  transfer.op = MOB_SUM;
  transfer.fetched = p.got.data();
  transfer.signal = p.signal;
  transfer.signal_value = 1;
  transfer.signal_op = MOB_SIGNAL_ADD;
  transfer.completion_word = &p.counted;
  return transfer;
}

mob_status_t run_spans(mob_kind_t kind, Places& p) {
  mob_transfer_t transfer = described(kind, p);
  const mob_span_t remote[] = {{p.words, 8}, {p.words + 1, kFaultBytes - 8}};
  const mob_span_t local = {transfer.local, kFaultBytes};
  transfer.shape = MOB_SPANS;
  transfer.remote_spans = remote;
  transfer.remote_span_count = 2;
  transfer.local_spans = &local;
  transfer.local_span_count = 1;
  return mob_transfer_nbi(&transfer);
}

std::vector<void*> pieces(uint64_t* words) {
  std::vector<void*> places;
  for (size_t i = 0; i < kWords; ++i) places.push_back(words + i);
  return places;
}

constexpr size_t kRow = 2 * sizeof(uint64_t);
constexpr size_t kRows[] = {kFaultBytes / kRow};
constexpr ptrdiff_t kRowStride[] = {kRow};

std::vector<HookedCall> hooked_calls() {
  constexpr Effect kPuts{.changed = kWords};
  constexpr Effect kGets{.got = kWords};
  constexpr Effect kAdds{.changed = kWords, .adds = true};
  constexpr Effect kSetsOne{.changed = 1, .got = 1};
  return {
      {"mob_put", kPuts,
       [](Places& p) { return mob_put(p.target, p.words, p.local.data(), kFaultBytes); }},
      {"mob_get", kGets,
       [](Places& p) { return mob_get(p.target, p.words, p.got.data(), kFaultBytes); }},
      {"mob_put_nb", kPuts,
       [](Places& p) {
         mob_handle_t handle = MOB_HANDLE_DONE;
         return completed(mob_put_nb(p.target, p.words, p.local.data(), kFaultBytes, &handle),
                          &handle);
       }},
      {"mob_get_nb", kGets,
       [](Places& p) {
         mob_handle_t handle = MOB_HANDLE_DONE;
         return completed(mob_get_nb(p.target, p.words, p.got.data(), kFaultBytes, &handle),
                          &handle);
       }},
      {"mob_put_nbi", kPuts,
       [](Places& p) { return mob_put_nbi(p.target, p.words, p.local.data(), kFaultBytes); }},
      {"mob_get_nbi", kGets,
       [](Places& p) { return mob_get_nbi(p.target, p.words, p.got.data(), kFaultBytes); }},
      {"mob_put8", {.changed = 1}, [](Places& p) { return mob_put8(p.target, p.words, kValue); }},
      {"mob_get8", {.got = 1}, [](Places& p) { return mob_get8(p.target, p.words, p.got.data()); }},
      {"mob_put_signal",
       {.changed = kWords, .signals = true},
       [](Places& p) {
         return mob_put_signal(p.target, p.words, p.local.data(), kFaultBytes, p.signal, 1,
                               MOB_SIGNAL_ADD);
       }},
      {"mob_get_signal",
       {.got = kWords, .signals = true},
       [](Places& p) {
         return mob_get_signal(p.target, p.words, p.got.data(), kFaultBytes, p.signal, 1,
                               MOB_SIGNAL_ADD);
       }},
      {"mob_put_counted",
       {.changed = kWords, .signals = true, .counts = true},
       [](Places& p) {
         return mob_put_counted(p.target, p.words, p.local.data(), kFaultBytes, p.signal, nullptr,
                                &p.counted);
       }},
      {"mob_get_counted",
       {.got = kWords, .signals = true, .counts = true},
       [](Places& p) {
         return mob_get_counted(p.target, p.words, p.got.data(), kFaultBytes, p.signal, nullptr,
                                &p.counted);
       }},
      {"mob_put_strided", kPuts,
       [](Places& p) {
         return mob_put_strided(p.target, p.words, kRowStride, p.local.data(), kRowStride, kRow,
                                kRows, 1);
       }},
      {"mob_get_strided", kGets,
       [](Places& p) {
         return mob_get_strided(p.target, p.words, kRowStride, p.got.data(), kRowStride, kRow,
                                kRows, 1);
       }},
      {"mob_accumulate_strided", kAdds,
       [](Places& p) {
         return mob_accumulate_strided(p.target, p.words, kRowStride, p.local.data(), kRowStride,
                                       kRow, kRows, 1, MOB_UINT64, MOB_SUM, nullptr);
       }},
      {"mob_put_pieces", kPuts,
       [](Places& p) {
         return mob_put_pieces(p.target, pieces(p.words).data(), pieces(p.local.data()).data(),
                               kWords, 8);
       }},
      {"mob_get_pieces", kGets,
       [](Places& p) {
         return mob_get_pieces(p.target, pieces(p.words).data(), pieces(p.got.data()).data(),
                               kWords, 8);
       }},
      {"mob_accumulate_pieces", kAdds,
       [](Places& p) {
         return mob_accumulate_pieces(p.target, pieces(p.words).data(),
                                      pieces(p.local.data()).data(), kWords, 8, MOB_UINT64, MOB_SUM,
                                      nullptr);
       }},
      {"mob_transfer_nbi",
       {.changed = kWords, .signals = true, .counts = true},
       [](Places& p) { return run_spans(MOB_PUT, p); }},
      {"mob_transfer_nbi",
       {.got = kWords, .signals = true, .counts = true},
       [](Places& p) { return run_spans(MOB_GET, p); }},
      {"mob_transfer_nb",
       {.changed = kWords, .adds = true, .got = kWords, .signals = true, .counts = true},
       [](Places& p) {
         const mob_transfer_t transfer = described(MOB_FETCH_ACCUMULATE, p);
         mob_handle_t handle = MOB_HANDLE_DONE;
         return completed(mob_transfer_nb(&transfer, &handle), &handle);
       }},
      {"mob_accumulate", kAdds,
       [](Places& p) {
         return mob_accumulate(p.target, p.words, p.local.data(), kWords, MOB_UINT64, MOB_SUM);
       }},
      {"mob_fetch_op",
       {.changed = 1, .adds = true, .got = 1},
       [](Places& p) {
         return mob_fetch_op(p.target, p.words, MOB_UINT64, MOB_SUM, p.local.data(), p.got.data());
       }},
      {"mob_fetch_add8",
       {.changed = 1, .adds = true, .got = 1},
       [](Places& p) { return mob_fetch_add8(p.target, p.words, kValue, p.got.data()); }},
      {"mob_swap8", kSetsOne,
       [](Places& p) { return mob_swap8(p.target, p.words, kValue, p.got.data()); }},
      {"mob_compare_swap8", kSetsOne,
       [](Places& p) { return mob_compare_swap8(p.target, p.words, 0, kValue, p.got.data()); }},
  };
}

// Runs it twice; one of the runs fails.
void run_twice(const HookedCall& call, Places& places) {
  int failures = 0;
  for (int i = 0; i < 2; ++i) {
    std::ranges::fill(places.got, kUntouched);
    mob_status_t status = call.run(places);
    if (status == MOB_OK) status = mob_flush_all();
    const bool failed = status != MOB_OK;
    if (failed) {
      ++failures;
      EXPECT_EQ(status, MOB_ERR_PEER) << call.name;
      const std::string text = mob_last_error();
      EXPECT_EQ(text.rfind(std::string(call.name) + ":", 0), 0u) << text;
      EXPECT_NE(text.find("injected"), std::string::npos) << text;
      EXPECT_EQ(mob_flush_all(), MOB_OK) << call.name << " is told twice";
    }
    for (size_t word = 0; word < kWords; ++word) {
      const bool came = places.got[word] != kUntouched;
      EXPECT_EQ(came, !failed && word < call.effect.got) << call.name << ", word " << word;
    }
  }
  EXPECT_EQ(failures, injects() ? 1 : 0) << call.name;
}

// Checks the left neighbour's changes to this rank's memory, and this rank's counters.
void check(const HookedCall& call, const uint64_t* words, const uint64_t* signal,
           uint64_t counted) {
  const uint64_t done = injects() ? 1 : 2;
  const uint64_t value = call.effect.adds ? done * kValue : kValue;
  for (size_t word = 0; word < kWords; ++word) {
    EXPECT_EQ(words[word], word < call.effect.changed ? value : 0) << call.name << ", " << word;
  }
  EXPECT_EQ(*signal, call.effect.signals ? done : 0) << call.name;
  EXPECT_EQ(counted, call.effect.counts ? done : 0) << call.name;
}

void every_call_on(uint64_t* mine, uint64_t* theirs) {
  const mob_rank_t target = right_of(mob_rank());
  for (const HookedCall& call : hooked_calls()) {
    std::fill_n(mine, kWords + 1, 0);
    barrier();
    Places places{target, theirs, theirs + kWords};
    run_twice(call, places);
    barrier();
    check(call, mine, mine + kWords, places.counted);
    barrier();
  }
}

}  // namespace

TEST(Faults, OnAllocatedMemory) {
  const Shared memory(kFaultBytes + 8);
  every_call_on(reinterpret_cast<uint64_t*>(memory.local()),
                reinterpret_cast<uint64_t*>(memory.at(right_of(mob_rank()))));
}

TEST(Faults, OnExposedMemory) {
  std::vector<uint64_t> memory(kWords + 1);
  mob_exposed_t exposed = nullptr;
  EXPECT_EQ(mob_expose(memory.data(), kFaultBytes + 8, 0, &exposed), MOB_OK) << mob_last_error();
  std::vector<void*> all(static_cast<size_t>(mob_size()));
  EXPECT_EQ(mob_publish(MOB_TEAM_WORLD, memory.data(), all.data()), MOB_OK) << mob_last_error();
  every_call_on(memory.data(),
                static_cast<uint64_t*>(all[static_cast<size_t>(right_of(mob_rank()))]));
  EXPECT_EQ(mob_withdraw(exposed), MOB_OK) << mob_last_error();
  barrier();
}

// A synchronising call reports a failure once, and has synchronised in spite of it.
TEST(Faults, SynchronisingCallsReturnThemAndAreDone) {
  const Shared memory(kFaultBytes);
  const mob_rank_t target = right_of(mob_rank());
  mob_mutexes_t mutexes = nullptr;
  mob_access_t access = nullptr;
  mob_epoch_t epoch = nullptr;
  EXPECT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch), MOB_OK) << mob_last_error();
  const std::function<mob_status_t()> ends[] = {
      [] { return mob_barrier(); },
      [] { return mob_team_barrier(MOB_TEAM_WORLD); },
      [&] { return mob_epoch_fence(epoch); },
      [&] { return mob_mutex_unlock(mutexes, 0, target); },
      [&] { return mob_access_unlock(access, target); },
      [] { return mob_flush_local_all(); },
      [&] { return mob_flush(target); },
  };
  const uint64_t value = kValue;
  for (const auto& end : ends) {
    EXPECT_EQ(mob_mutex_lock(mutexes, 0, target, nullptr), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_access_lock(access, target, MOB_EXCLUSIVE, nullptr), MOB_OK) << mob_last_error();
    int failures = 0;
    for (int i = 0; i < 2; ++i) {
      failures += mob_put_nbi(target, memory.at(target), &value, 8) != MOB_OK ? 1 : 0;
    }
    const mob_status_t status = end();
    if (status != MOB_OK) {
      ++failures;
      EXPECT_EQ(status, MOB_ERR_PEER) << mob_last_error();
    }
    EXPECT_EQ(failures, injects() ? 1 : 0);
    // One of the two may still be held.
    (void)mob_mutex_unlock(mutexes, 0, target);
    (void)mob_access_unlock(access, target);
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    barrier();
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(memory.local()), kValue);
    barrier();
  }
  EXPECT_EQ(mob_epoch_free(epoch), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_access_free(access), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
}

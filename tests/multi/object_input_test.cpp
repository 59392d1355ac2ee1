// SPDX-License-Identifier: BSD-3-Clause

// Wrong arguments of calls on words, counters, contexts, teams and jobs of threads.

#include <climits>
#include <functional>
#include <string>
#include <thread>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::Shared;

namespace {

// The 8-byte and the 4-byte call of one name, with and without a place for the result.
struct Call {
  std::string name;
  size_t bytes;
  std::function<mob_status_t(mob_rank_t, void*, bool)> call;
};

template <typename T>
Call update_call(const char* name, mob_status_t (*function)(mob_rank_t, void*, T, T*)) {
  return {name, sizeof(T), [function](mob_rank_t rank, void* word, bool with_result) {
            T old = 0;
            return function(rank, word, 1, with_result ? &old : nullptr);
          }};
}

template <typename T>
Call compare_call(const char* name, mob_status_t (*function)(mob_rank_t, void*, T, T, T*)) {
  return {name, sizeof(T), [function](mob_rank_t rank, void* word, bool with_result) {
            T old = 0;
            return function(rank, word, 0, 1, with_result ? &old : nullptr);
          }};
}

std::vector<Call> word_calls() {
  return {update_call("mob_fetch_add8", mob_fetch_add8),
          update_call("mob_fetch_and8", mob_fetch_and8),
          update_call("mob_fetch_or8", mob_fetch_or8),
          update_call("mob_fetch_xor8", mob_fetch_xor8),
          update_call("mob_swap8", mob_swap8),
          compare_call("mob_compare_swap8", mob_compare_swap8),
          update_call("mob_fetch_add4", mob_fetch_add4),
          update_call("mob_fetch_and4", mob_fetch_and4),
          update_call("mob_fetch_or4", mob_fetch_or4),
          update_call("mob_fetch_xor4", mob_fetch_xor4),
          update_call("mob_swap4", mob_swap4),
          compare_call("mob_compare_swap4", mob_compare_swap4)};
}

}  // namespace

TEST(WrongWords, EveryArgumentOfEveryCall) {
  const Shared memory(64);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  const std::string rank_text = "rank " + std::to_string(target);
  for (const Call& c : word_calls()) {
    for (const mob_rank_t rank : {-1, mob_size(), INT_MAX, INT_MIN}) {
      expect_error(c.call(rank, memory.at(target), true), MOB_ERR_RANK, c.name,
                   "0 to " + std::to_string(mob_size() - 1));
    }
    expect_error(c.call(target, memory.at(target, 64), true), MOB_ERR_RANGE, c.name, rank_text);
    uint64_t own = 0;
    expect_error(c.call(target, &own, true), MOB_ERR_RANGE, c.name, rank_text);
    for (size_t off = 1; off < c.bytes; ++off) {
      expect_error(c.call(target, memory.at(target, off), true), MOB_ERR_ARGUMENT, c.name,
                   "not aligned to its " + std::to_string(c.bytes));
    }
    expect_error(c.call(target, nullptr, true), MOB_ERR_ARGUMENT, c.name, "null");
  }
  barrier();
  EXPECT_TRUE(mobius_test::all_are(memory.local(), 64, 0)) << "a refused call wrote";
}

// Also where the part was used before, so that its words are accessed inline.
TEST(WrongWords, NoPlaceForTheResult) {
  const mob_rank_t me = mob_rank();
  for (const Call& c : word_calls()) {
    const Shared memory(64);
    expect_error(c.call(me, memory.at(me), false), MOB_ERR_ARGUMENT, c.name, "result");
    EXPECT_EQ(c.call(me, memory.at(me), true), MOB_OK) << mob_last_error();
    const unsigned char before = memory.local()[0];
    expect_error(c.call(me, memory.at(me), false), MOB_ERR_ARGUMENT, c.name, "result");
    EXPECT_EQ(memory.local()[0], before) << c.name << " wrote";
  }
}

TEST(WrongWords, FetchOpsAndAccumulates) {
  const Shared memory(64);
  const mob_rank_t me = mob_rank();
  unsigned char* at = memory.at(me);
  int64_t one = 1;
  int64_t old = 0;
  mob_type_t no_type;
  const int beyond = MOB_TYPE_COUNT;
  std::memcpy(&no_type, &beyond, sizeof no_type);
  expect_error(mob_fetch_op(me, at, no_type, MOB_SUM, &one, &old), MOB_ERR_ARGUMENT, "mob_fetch_op",
               "type");
  expect_error(mob_fetch_op(me, at, MOB_DOUBLE, MOB_BOR, &one, &old), MOB_ERR_ARGUMENT,
               "mob_fetch_op", "not defined");
  expect_error(mob_fetch_op(me, at, MOB_INT64, MOB_SUM, nullptr, &old), MOB_ERR_ARGUMENT,
               "mob_fetch_op", "null");
  expect_error(mob_fetch_op(me, at, MOB_INT64, MOB_SUM, &one, nullptr), MOB_ERR_ARGUMENT,
               "mob_fetch_op", "null");
  expect_error(mob_fetch_op(me, at + 4, MOB_INT64, MOB_SUM, &one, &old), MOB_ERR_ARGUMENT,
               "mob_fetch_op", "multiple of 8");
  EXPECT_EQ(mob_fetch_op(me, at, MOB_INT64, MOB_NO_OP, nullptr, &old), MOB_OK) << mob_last_error();
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 8, SIZE_MAX / 8 + 1, size_t{9}}) {
    expect_error(mob_accumulate(me, at, &one, count, MOB_INT64, MOB_SUM), MOB_ERR_RANGE,
                 "mob_accumulate", "");
  }
  expect_error(mob_accumulate(me, at, nullptr, 1, MOB_INT64, MOB_SUM), MOB_ERR_ARGUMENT,
               "mob_accumulate", "local buffer");
  expect_error(mob_accumulate_scaled(me, at, &one, 1, MOB_INT64, nullptr), MOB_ERR_ARGUMENT,
               "mob_accumulate_scaled", "scale");
  expect_error(mob_fetch_accumulate(me, at, &one, nullptr, 1, MOB_INT64, MOB_SUM), MOB_ERR_ARGUMENT,
               "mob_fetch_accumulate", "null");
  EXPECT_EQ(mob_accumulate(me, nullptr, nullptr, 0, MOB_INT64, MOB_SUM), MOB_OK);
  EXPECT_TRUE(mobius_test::all_are(memory.local(), 64, 0));
  EXPECT_EQ(mob_type_bytes(no_type), 0u);
  EXPECT_EQ(mob_op_is_defined(MOB_SUM, no_type), 0);
  barrier();
}

TEST(WrongCounters, EveryArgument) {
  mob_counter_t counter = nullptr;
  uint64_t value = 5;
  expect_error(mob_counter_create(nullptr), MOB_ERR_ARGUMENT, "mob_counter_create", "null");
  EXPECT_EQ(mob_counter_create(&counter), MOB_OK);
  expect_error(mob_counter_get(counter, nullptr), MOB_ERR_ARGUMENT, "mob_counter_get", "null");
  EXPECT_EQ(mob_counter_free(counter), MOB_OK);
  EXPECT_EQ(mob_counter_free(nullptr), MOB_OK);
  const auto off = reinterpret_cast<mob_counter_t>(reinterpret_cast<char*>(counter) + 8);
  const auto nowhere = reinterpret_cast<mob_counter_t>(&value);
  const Shared memory(128);
  const auto not_one = reinterpret_cast<mob_counter_t>(memory.local());
  for (mob_counter_t wrong : {counter, off, nowhere, not_one}) {
    const std::string text = "not a live counter";
    expect_error(mob_counter_free(wrong), MOB_ERR_HANDLE, "mob_counter_free", text);
    expect_error(mob_counter_get(wrong, &value), MOB_ERR_HANDLE, "mob_counter_get", text);
    expect_error(mob_counter_set(wrong, 1), MOB_ERR_HANDLE, "mob_counter_set", text);
    expect_error(mob_counter_wait(wrong, 0, nullptr), MOB_ERR_HANDLE, "mob_counter_wait", text);
  }
  expect_error(mob_counter_get(nullptr, &value), MOB_ERR_HANDLE, "mob_counter_get", "counter");
  expect_error(mob_counter_set(nullptr, 1), MOB_ERR_HANDLE, "mob_counter_set", "counter");
  expect_error(mob_counter_wait(nullptr, 0, nullptr), MOB_ERR_HANDLE, "mob_counter_wait",
               "counter");
  EXPECT_EQ(value, 5u);
}

// One process's counter is valid in another only as the target counter of transfers to its owner.
TEST(WrongCounters, OfAnotherProcess) {
  const Shared handles(sizeof(mob_counter_t));
  mob_counter_t own = nullptr;
  EXPECT_EQ(mob_counter_create(&own), MOB_OK);
  std::memcpy(handles.local(), &own, sizeof own);
  barrier();
  const mob_rank_t other = mobius_test::right_of(mob_rank());
  mob_counter_t theirs = nullptr;
  EXPECT_EQ(mob_get(other, handles.at(other), &theirs, sizeof theirs), MOB_OK);
  // In table mode two processes' counters may have the same address: then it names the caller's
  // own.
  if (theirs != own) {
    uint64_t value = 0;
    expect_error(mob_counter_get(theirs, &value), MOB_ERR_HANDLE, "mob_counter_get", "rank");
    expect_error(mob_counter_wait(theirs, 0, nullptr), MOB_ERR_HANDLE, "mob_counter_wait", "rank");
    mob_transfer_t transfer{};
    transfer.rank = other;
    transfer.origin_counter = theirs;
    expect_error(mob_transfer(&transfer), MOB_ERR_HANDLE, "mob_transfer", "rank");
    transfer.origin_counter = nullptr;
    transfer.target_counter = own;
    // A process of another job looks for its counter itself.
    if (mobius_test::on_team.is_one_job) {
      expect_error(mob_transfer(&transfer), MOB_ERR_HANDLE, "mob_transfer",
                   "rank " + std::to_string(other));
    }
  }
  barrier();
  EXPECT_EQ(mob_counter_free(own), MOB_OK);
}

TEST(WrongContexts, EveryArgument) {
  mob_context_t context = nullptr;
  int elsewhere = 0;
  expect_error(mob_context_create(nullptr), MOB_ERR_ARGUMENT, "mob_context_create", "null");
  EXPECT_EQ(mob_context_create(&context), MOB_OK);
  EXPECT_EQ(mob_context_free(context), MOB_OK);
  for (mob_context_t wrong : {context, reinterpret_cast<mob_context_t>(&elsewhere)}) {
    expect_error(mob_context_free(wrong), MOB_ERR_HANDLE, "mob_context_free", "not a live context");
    expect_error(mob_context_use(wrong), MOB_ERR_HANDLE, "mob_context_use", "not a live context");
  }
  EXPECT_EQ(mob_context_current(), MOB_CONTEXT_DEFAULT);
}

// A thread whose context another thread freed uses the default from then on.
TEST(WrongContexts, FreedByAnotherThread) {
  const Shared memory(8);
  mob_context_t context = nullptr;
  EXPECT_EQ(mob_context_create(&context), MOB_OK);
  EXPECT_EQ(mob_context_use(context), MOB_OK);
  std::jthread([context] { EXPECT_EQ(mob_context_free(context), MOB_OK); }).join();
  EXPECT_EQ(mob_put_nbi(mob_rank(), memory.at(mob_rank()), &context, 8), MOB_OK);
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  EXPECT_EQ(mob_context_use(MOB_CONTEXT_DEFAULT), MOB_OK);
  barrier();
}

TEST(WrongTeams, EveryArgument) {
  mob_team_t team = MOB_TEAM_NONE;
  const mob_rank_t size = mob_size();
  const auto strided = [&](mob_rank_t start, mob_rank_t stride, mob_rank_t count) {
    return mob_team_split_strided(MOB_TEAM_WORLD, start, stride, count, &team);
  };
  const char* call = "mob_team_split_strided";
  const std::string ranks = "0 to " + std::to_string(size - 1);
  expect_error(strided(0, 0, 1), MOB_ERR_ARGUMENT, call, "stride 0");
  expect_error(strided(0, 1, 0), MOB_ERR_ARGUMENT, call, "size 0");
  expect_error(strided(0, 1, -3), MOB_ERR_ARGUMENT, call, "size -3");
  expect_error(strided(-1, 1, 1), MOB_ERR_RANK, call, ranks);
  expect_error(strided(size, 1, 1), MOB_ERR_RANK, call, ranks);
  expect_error(strided(0, 1, size + 1), MOB_ERR_RANK, call, ranks);
  expect_error(strided(0, -1, 2), MOB_ERR_RANK, call, ranks);
  expect_error(strided(0, INT_MAX, INT_MAX), MOB_ERR_RANK, call, ranks);
  expect_error(mob_team_split_strided(MOB_TEAM_WORLD, 0, 1, 1, nullptr), MOB_ERR_ARGUMENT, call,
               "null");

  call = "mob_team_split_list";
  const mob_rank_t twice[] = {0, 0};
  const mob_rank_t outside[] = {0, size};
  const mob_rank_t negative[] = {-1};
  const auto list = [&](const mob_rank_t* members, mob_rank_t count) {
    return mob_team_split_list(MOB_TEAM_WORLD, members, count, &team);
  };
  expect_error(list(nullptr, 1), MOB_ERR_ARGUMENT, call, "null");
  expect_error(list(twice, 0), MOB_ERR_ARGUMENT, call, "0 ranks");
  expect_error(list(twice, -1), MOB_ERR_ARGUMENT, call, "-1 ranks");
  expect_error(list(twice, 2), MOB_ERR_ARGUMENT, call, "rank 0 is listed twice");
  expect_error(list(outside, 2), MOB_ERR_RANK, call, ranks);
  expect_error(list(negative, 1), MOB_ERR_RANK, call, ranks);
  expect_error(mob_team_split_list(MOB_TEAM_WORLD, twice, 1, nullptr), MOB_ERR_ARGUMENT, call,
               "null");
  EXPECT_EQ(team, MOB_TEAM_NONE);

  mob_rank_t result = 7;
  call = "mob_team_translate";
  expect_error(mob_team_translate(MOB_TEAM_WORLD, -1, MOB_TEAM_WORLD, &result), MOB_ERR_RANK, call,
               ranks);
  expect_error(mob_team_translate(MOB_TEAM_WORLD, size, MOB_TEAM_WORLD, &result), MOB_ERR_RANK,
               call, ranks);
  expect_error(mob_team_translate(MOB_TEAM_WORLD, 0, MOB_TEAM_WORLD, nullptr), MOB_ERR_ARGUMENT,
               call, "null");
  EXPECT_EQ(result, 7);
  expect_error(mob_team_free(MOB_TEAM_WORLD), MOB_ERR_ARGUMENT, "mob_team_free", "world");
  EXPECT_EQ(mob_team_free(MOB_TEAM_NONE), MOB_OK);
}

TEST(WrongTeams, NotLive) {
  mob_team_t freed = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, 0, &freed), MOB_OK);
  EXPECT_EQ(mob_team_free(freed), MOB_OK);
  int elsewhere = 0;
  for (mob_team_t wrong : {freed, MOB_TEAM_NONE, reinterpret_cast<mob_team_t>(&elsewhere)}) {
    mob_team_t team = MOB_TEAM_NONE;
    mob_rank_t rank = 0;
    const std::string text = "not a live team";
    expect_error(mob_team_split(wrong, 0, 0, &team), MOB_ERR_HANDLE, "mob_team_split", text);
    expect_error(mob_team_split_strided(wrong, 0, 1, 1, &team), MOB_ERR_HANDLE,
                 "mob_team_split_strided", text);
    expect_error(mob_team_split_list(wrong, &rank, 1, &team), MOB_ERR_HANDLE, "mob_team_split_list",
                 text);
    expect_error(mob_team_translate(wrong, 0, MOB_TEAM_WORLD, &rank), MOB_ERR_HANDLE,
                 "mob_team_translate", text);
    expect_error(mob_team_translate(MOB_TEAM_WORLD, 0, wrong, &rank), MOB_ERR_HANDLE,
                 "mob_team_translate", text);
    EXPECT_EQ(mob_team_rank(wrong), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_team_size(wrong), MOB_ERR_HANDLE);
    if (wrong != MOB_TEAM_NONE) {
      expect_error(mob_team_free(wrong), MOB_ERR_HANDLE, "mob_team_free", text);
    }
  }
  barrier();
}

// One rank's mistake is an error in all, and the next split works.
TEST(WrongTeams, NullResultOfOneRankFailsEverywhere) {
  const bool wrong = mob_rank() == mob_size() - 1;
  mob_team_t team = MOB_TEAM_NONE;
  expect_error(mob_team_split(MOB_TEAM_WORLD, 0, 0, wrong ? nullptr : &team),
               wrong ? MOB_ERR_ARGUMENT : MOB_ERR_PEER, "mob_team_split",
               wrong ? "null" : "rank " + std::to_string(mob_size() - 1));
  EXPECT_EQ(team, MOB_TEAM_NONE);
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, 0, &team), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_team_free(team), MOB_OK);
  barrier();
}

TEST(WrongThreadRanks, InsideAJobOrWithoutAFunction) {
  const auto nothing = [](void*) {};
  expect_error(mob_threads_run(2, nullptr, nullptr), MOB_ERR_ARGUMENT, "mob_threads_run", "null");
  expect_error(mob_threads_run(2, nothing, nullptr), MOB_ERR_STATE, "mob_threads_run", "job");
}

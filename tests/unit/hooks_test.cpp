// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/transfer/hooks/disturb.h"
#include "engine/transfer/hooks/reorder_plan.h"
#include "engine/transfer/hooks/watch.h"

namespace mobius::engine {
namespace {

// Takes all held operations, as a fence does.
std::vector<int> drained(ReorderPlan<int>& plan) {
  std::vector<int> order;
  while (!plan.empty()) order.push_back(plan.take());
  return order;
}

TEST(ReorderPlan, NothingIsLostDoubledOrTakenAcrossAFence) {
  ReorderPlan<int> plan(7, 0);
  for (int epoch = 0; epoch < 100; ++epoch) {
    for (int i = 0; i < epoch; ++i) plan.add(epoch * 1000 + i);
    std::vector<int> order = drained(plan);
    ASSERT_EQ(order.size(), static_cast<size_t>(epoch));
    std::ranges::sort(order);
    for (int i = 0; i < epoch; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], epoch * 1000 + i);
  }
}

TEST(ReorderPlan, EveryOrderOfThreeComesUp) {
  ReorderPlan<int> plan(1, 0);
  std::set<std::vector<int>> orders;
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 3; ++i) plan.add(i);
    orders.insert(drained(plan));
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(ReorderPlan, SeedsRepeatAndRanksDiffer) {
  const auto order = [](uint64_t seed, mob_rank_t rank) {
    ReorderPlan<int> plan(seed, rank);
    for (int i = 0; i < 50; ++i) plan.add(i);
    return drained(plan);
  };
  EXPECT_EQ(order(3, 1), order(3, 1));
  EXPECT_NE(order(3, 1), order(4, 1));
  EXPECT_NE(order(3, 1), order(3, 2));
}

class CountingCarrier final : public Carrier {
 public:
  mob_status_t carry(const Operation&) override { return ++carried, MOB_OK; }
  mob_status_t update(const WordUpdate&) override { return ++carried, MOB_OK; }
  mob_status_t order() override { return MOB_OK; }
  bool progress() override { return false; }

  int carried = 0;
};

TEST(FaultHook, FailsOneOfEveryAndCarriesTheOthers) {
  CountingCarrier end;
  FaultHook hook(end, 10, 5, 0);
  mob_transfer_t transfer{};
  Operation operation;
  operation.call = "mob_put";
  operation.transfer = &transfer;
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const mob_status_t status =
        i % 2 == 0 ? hook.carry(operation) : hook.update({.call = "mob_fetch_add8", .rank = 0});
    if (status == MOB_OK) continue;
    ++failed;
    EXPECT_EQ(status, MOB_ERR_PEER);
    EXPECT_NE(std::string(mob_last_error()).find("injected"), std::string::npos);
  }
  EXPECT_EQ(failed, 10);
  EXPECT_EQ(end.carried, 90);
}

TEST(Stats, TableIsAlignedAndAddsUp) {
  std::map<mob_rank_t, TargetCounts> targets;
  targets[0].operations[MOB_PUT] = 1;
  targets[0].bytes[MOB_PUT] = 8;
  targets[12].operations[MOB_PUT] = 2;
  targets[12].bytes[MOB_PUT] = 1'000'000'000'000;
  const std::string table = stats_table(3, targets);
  EXPECT_NE(table.find("rank 3"), std::string::npos);
  EXPECT_NE(table.find("1000000000008"), std::string::npos) << table;
  // All lines of the table, except the title, have the same length.
  std::set<size_t> lengths;
  for (size_t at = table.find('\n') + 1; at < table.size();) {
    const size_t end = table.find('\n', at);
    lengths.insert(end - at);
    at = end + 1;
  }
  EXPECT_EQ(lengths.size(), 1u) << table;
}

TEST(Stats, MessagesAndCollectiveCallsAreCounted) {
  std::map<mob_rank_t, TargetCounts> targets;
  targets[1].messages = 7;
  targets[1].message_bytes = 123'456;
  const std::string table = stats_table(0, targets);
  EXPECT_NE(table.find("msg bytes"), std::string::npos);
  EXPECT_NE(table.find("123456"), std::string::npos) << table;
  EXPECT_EQ(mobius::engine::calls_line(2, {{"mob_allreduce", 3}, {"mob_barrier", 12}}),
            "mobius: rank 2: collective calls: mob_allreduce 3, mob_barrier 12\n");
  EXPECT_EQ(mobius::engine::calls_line(2, {}), "");
}

TEST(Timeline, FileNamesHaveTheRank) {
  EXPECT_EQ(Timeline::file_name("t.json", 3), "t.3.json");
  EXPECT_EQ(Timeline::file_name("a.b/t", 3), "a.b/t.3");
  EXPECT_EQ(Timeline::file_name("/x/t%r.json", 12), "/x/t12.json");
  EXPECT_EQ(Timeline::file_name("/x/.hidden", 1), "/x/.hidden.1");
}

}  // namespace
}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Qenv and LAPI_Senv, and interrupt mode.

#include <sched.h>

#include <atomic>
#include <thread>

#include "fixture.h"

namespace lapi_test {
namespace {

int query(lapi_query_t what) {
  int value = -77;
  ok(LAPI_Qenv(handle, what, &value));
  return value;
}

TEST(Environment, EveryQueryHasAnAnswer) {
  EXPECT_EQ(query(TASK_ID), static_cast<int>(me));
  EXPECT_EQ(query(NUM_TASKS), static_cast<int>(tasks));
  EXPECT_GE(query(MAX_UHDR_SZ), 900);
  EXPECT_EQ(query(MAX_UHDR_SZ) % 8, 0);
  EXPECT_GT(query(MAX_DATA_SZ), 1 << 30);
  EXPECT_EQ(query(ERROR_CHK), 1);
  EXPECT_EQ(query(INTERRUPT_SET), 1);
  EXPECT_GE(query(TIMEOUT), query(MIN_TIMEOUT));
  EXPECT_LE(query(TIMEOUT), query(MAX_TIMEOUT));
  EXPECT_GE(query(MAX_PORTS), 2);
  EXPECT_GE(query(MAX_PKT_SZ), 512);
  EXPECT_GE(query(LOC_ADDRTBL_SZ), 64);
  EXPECT_GT(query(MAX_ATOM_SIZE), 0);
  EXPECT_GT(query(ACK_THRESHOLD), 0);
  int local_size = 0;
  std::vector<int> places;  // positions among the tasks that share memory
  for (unsigned task = 0; task < tasks; ++task) places.push_back(is_far(task) ? -1 : local_size++);
  EXPECT_EQ(query(QUERY_SHM_ENABLED), local_size > 1 ? 1 : 0);
  EXPECT_EQ(query(QUERY_SHM_NUM_TASKS), local_size);
  for (const lapi_query_t what : {NUM_REX_BUFS, REX_BUF_SZ, EPOCH_NUM, USE_THRESH, RCV_FIFO_SIZE,
                                  MAX_PKTS_OUT, BULK_XFER, BULK_MIN_MSG_SIZE}) {
    EXPECT_EQ(query(what), 0);
  }
  EXPECT_GT(query(BUF_CP_SIZE), 0);
  std::vector<int> positions(tasks, -5);
  ok(LAPI_Qenv(handle, QUERY_SHM_TASKS, positions.data()));
  EXPECT_EQ(positions, places);
}

TEST(Environment, ValuesCanBeSet) {
  const int timeout = query(TIMEOUT);
  ok(LAPI_Senv(handle, TIMEOUT, 60));
  EXPECT_EQ(query(TIMEOUT), 60);
  ok(LAPI_Senv(handle, TIMEOUT, timeout));
  ok(LAPI_Senv(handle, ACK_THRESHOLD, 7));
  EXPECT_EQ(query(ACK_THRESHOLD), 7);
  for (const int value : {0, 1, 1, 0, 1}) {
    ok(LAPI_Senv(handle, INTERRUPT_SET, value));
    EXPECT_EQ(query(INTERRUPT_SET), value);
  }
}

void* take(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h, void**) {
  *comp_h = nullptr;
  static char place[64];
  return place;
}

TEST(Environment, StatisticsCountMessages) {
  ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(take), 50));
  gfence();
  // Separate counts: messages to the task itself, to tasks that share memory, and over the network.
  const auto of_way = [](lapi_query_t what) {
    lapi_statistics_t result = {};
    ok(LAPI_Qenv(handle, what, reinterpret_cast<int*>(&result)));
    return result;
  };
  const auto way_to = [](unsigned task) {
    if (task == me) return QUERY_LOCAL_SEND_STATISTICS;
    return is_far(task) ? QUERY_STATISTICS : QUERY_SHM_STATISTICS;
  };
  const lapi_statistics_t sent_before = of_way(way_to(right()));
  const lapi_statistics_t received_before = of_way(way_to(left()));
  gfence();
  char data[64] = {};
  for (int i = 0; i < 10; ++i) {
    ok(LAPI_Amsend(handle, right(), reinterpret_cast<void*>(50), nullptr, 0, data, sizeof data,
                   nullptr, nullptr, nullptr));
  }
  gfence();
  const lapi_statistics_t sent = of_way(way_to(right()));
  const lapi_statistics_t received = of_way(way_to(left()));
  EXPECT_EQ(sent.Tot_pkt_sent_cnt - sent_before.Tot_pkt_sent_cnt, 10u);
  EXPECT_EQ(received.Tot_pkt_recv_cnt - received_before.Tot_pkt_recv_cnt, 10u);
  EXPECT_EQ(sent.Tot_data_sent - sent_before.Tot_data_sent, 640u);
  EXPECT_EQ(received.Tot_data_recv - received_before.Tot_data_recv, 640u);
  bool any_far = false;
  for (unsigned task = 0; task < tasks; ++task) any_far |= is_far(task);
  if (!any_far) {
    EXPECT_EQ(of_way(QUERY_STATISTICS).Tot_pkt_sent_cnt, 0u);
  }
  gfence();
}

// ---- interrupts

std::atomic<std::thread::id> ran_on;

void* note_thread(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                  void**) {
  ran_on = std::this_thread::get_id();
  *comp_h = nullptr;
  return nullptr;
}

// Task 0 sends to the last one, which notices without a call of LAPI.
class Interrupts : public testing::Test {
 protected:
  void SetUp() override {
    ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(note_thread), 51));
    sent_ = 0;
    ready_ = 0;
    gfence();
    all_sent_ = addresses_of(&sent_);
    all_ready_ = addresses_of(&ready_);
  }
  bool is_target() const { return me == tasks - 1; }
  // The message is sent when the target is outside every call: task 0 polls until the target says
  // so.
  void send_and_see() {
    ran_on = std::thread::id();
    gfence();
    ++round_;
    if (is_target()) __atomic_store_n(&ready_, round_, __ATOMIC_RELEASE);
    if (me == 0) {
      for (int seen = 0; seen != round_;) get(tasks - 1, all_ready_[tasks - 1], &seen);
      ok(LAPI_Amsend(handle, tasks - 1, reinterpret_cast<void*>(51), nullptr, 0, nullptr, 0,
                     nullptr, nullptr, nullptr));
      put(tasks - 1, all_sent_[tasks - 1]);
    }
    if (is_target()) await(sent_);
  }

 private:
  void put(unsigned task, int* place) {
    ok(LAPI_Put(handle, task, sizeof round_, place, &round_, nullptr, nullptr, nullptr));
  }
  void get(unsigned task, int* place, int* here) {
    lapi_cntr_t got;
    ok(LAPI_Setcntr(handle, &got, 0));
    ok(LAPI_Get(handle, task, sizeof *here, place, here, nullptr, &got));
    ok(LAPI_Waitcntr(handle, &got, 1, nullptr));
  }
  void await(const int& word) const {
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) != round_) sched_yield();
  }

  static int sent_;
  static int ready_;
  std::vector<int*> all_sent_;
  std::vector<int*> all_ready_;
  int round_ = 0;
};
int Interrupts::sent_;
int Interrupts::ready_;

TEST_F(Interrupts, ATargetThatNeverCallsIsServed) {
  for (int i = 0; i < 10; ++i) {
    send_and_see();
    if (!is_target()) continue;
    while (ran_on.load() == std::thread::id()) sched_yield();
    EXPECT_NE(ran_on.load(), std::this_thread::get_id());
  }
  gfence();
}

TEST_F(Interrupts, WithoutThemHandlersRunInCallsOnly) {
  ok(LAPI_Senv(handle, INTERRUPT_SET, 0));
  for (int i = 0; i < 10; ++i) {
    send_and_see();
    if (!is_target()) continue;
    EXPECT_EQ(ran_on.load(), std::thread::id());
    while (ran_on.load() == std::thread::id()) ok(LAPI_Probe(handle));
    EXPECT_EQ(ran_on.load(), std::this_thread::get_id());
  }
  send_and_see();
  ok(LAPI_Senv(handle, INTERRUPT_SET, 1));
  if (is_target()) {
    while (ran_on.load() == std::thread::id()) sched_yield();
    EXPECT_NE(ran_on.load(), std::this_thread::get_id());
  }
  gfence();
}

}  // namespace
}  // namespace lapi_test

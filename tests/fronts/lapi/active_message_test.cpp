// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Amsend and LAPI_Amsendv: handlers, the threads that run them, and the calls permitted in
// them.

#include <sched.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

#include "fixture.h"

namespace lapi_test {
namespace {

enum Index : int {
  kStore = 1,
  kCount,
  kInline,
  kDrop,
  kNothing,
  kForbidden,
  kReply,
  kAnswer,
  kWait,
  kVector,
  kNoVector,
  kBytes,
  kLengths,
};

void* index(Index at) { return reinterpret_cast<void*>(static_cast<intptr_t>(at)); }

template <typename Function>
void set(Index at, Function* function) {
  ok(LAPI_Addr_set(handle, reinterpret_cast<void*>(function), at));
  gfence();
}

void poll_until(const std::atomic<int>& word, int value) {
  while (word.load() != value) {
    ok(LAPI_Probe(handle));
    sched_yield();
  }
}

// ---- where data goes, and the three counters

std::array<char, 1 << 20> arrived;
std::atomic<int> completed;
std::atomic<unsigned> header_seen;
std::atomic<std::thread::id> completion_thread;
std::atomic<std::thread::id> header_thread;

void note_completion(lapi_handle_t* hndl, void* user_info) {
  EXPECT_EQ(*hndl, handle);
  EXPECT_EQ(user_info, &arrived);
  completion_thread = std::this_thread::get_id();
  ++completed;
}

void* store(lapi_handle_t* hndl, void* uhdr, unsigned* uhdr_len, unsigned long* msg_len,
            compl_hndlr_t** comp_h, void** user_info) {
  EXPECT_EQ(*hndl, handle);
  EXPECT_EQ(*uhdr_len, sizeof(unsigned));
  const auto* info = reinterpret_cast<lapi_return_info_t*>(msg_len);
  EXPECT_EQ(info->src, left());
  EXPECT_EQ(info->msg_len, *msg_len);
  unsigned header = 0;
  std::memcpy(&header, uhdr, sizeof header);
  header_seen = header;
  header_thread = std::this_thread::get_id();
  *comp_h = note_completion;
  *user_info = &arrived;
  return arrived.data();
}

TEST(ActiveMessages, DataOfEverySizeAndAllCounters) {
  static lapi_cntr_t target;
  ok(LAPI_Setcntr(handle, &target, 0));
  completed = 0;
  set(kStore, store);
  const auto targets = addresses_of(&target);
  std::vector<char> data(arrived.size());
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + me);
  Counter origin;
  Counter completion;
  int round = 0;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{1000}, size_t{5000},
                             size_t{70'000}, arrived.size()}) {
    arrived.fill(0);
    gfence();
    const unsigned header = 100 + static_cast<unsigned>(round);
    ok(LAPI_Amsend(handle, right(), index(kStore), const_cast<unsigned*>(&header), sizeof header,
                   data.data(), bytes, targets[right()], origin.get(), completion.get()));
    EXPECT_EQ(origin.wait(1), 0);
    EXPECT_EQ(completion.wait(1), 0);
    ok(LAPI_Waitcntr(handle, &target, 1, nullptr));
    EXPECT_EQ(completed.load(), ++round);
    EXPECT_EQ(header_seen.load(), header);
    bool right_bytes = true;
    for (size_t i = 0; i < bytes; ++i) {
      right_bytes &= arrived[i] == static_cast<char>(i * 7 + left());
    }
    EXPECT_TRUE(right_bytes) << bytes;
    EXPECT_NE(completion_thread.load(), header_thread.load());
    EXPECT_NE(completion_thread.load(), std::this_thread::get_id());
    gfence();
  }
}

TEST(ActiveMessages, AnAddressNamesAHandlerToo) {
  completed = 0;
  const auto handlers = addresses_of(reinterpret_cast<char*>(store));
  const unsigned header = 5;
  Counter completion;
  ok(LAPI_Amsend(handle, right(), handlers[right()], const_cast<unsigned*>(&header), sizeof header,
                 nullptr, 0, nullptr, nullptr, completion.get()));
  completion.wait(1);
  gfence();
  EXPECT_EQ(completed.load(), 1);
  gfence();
}

// ---- inline completion, and one-packet messages

void inline_completion(lapi_handle_t*, void*) {
  completion_thread = std::this_thread::get_id();
  ++completed;
}

void* complete_inline(lapi_handle_t*, void* uhdr, unsigned*, unsigned long* msg_len,
                      compl_hndlr_t** comp_h, void**) {
  auto* info = reinterpret_cast<lapi_return_info_t*>(msg_len);
  EXPECT_EQ(uhdr, nullptr);
  if (info->udata_one_pkt_ptr != nullptr) {
    EXPECT_EQ(*static_cast<long*>(info->udata_one_pkt_ptr), 42);
  }
  header_thread = std::this_thread::get_id();
  info->ret_flags = LAPI_SEND_REPLY;
  *comp_h = inline_completion;
  return arrived.data();
}

TEST(ActiveMessages, CompletionHandlersMayRunInline) {
  set(kInline, complete_inline);
  for (const size_t count : {1, 100'000}) {
    completed = 0;
    gfence();
    const std::vector<long> data(count, 42);
    Counter completion;
    ok(LAPI_Amsend(handle, right(), index(kInline), nullptr, 0, const_cast<long*>(data.data()),
                   count * sizeof(long) / (count > 1 ? 8 : 1), nullptr, nullptr, completion.get()));
    completion.wait(1);
    gfence();
    EXPECT_EQ(completed.load(), 1);
    EXPECT_EQ(*reinterpret_cast<long*>(arrived.data()), 42);
  }
  gfence();
}

void* bury(lapi_handle_t*, void*, unsigned*, unsigned long* msg_len, compl_hndlr_t** comp_h,
           void**) {
  auto* info = reinterpret_cast<lapi_return_info_t*>(msg_len);
  info->ctl_flags = LAPI_BURY_MSG;
  *comp_h = nullptr;
  ++completed;
  return nullptr;
}

TEST(ActiveMessages, MessagesMayBeThrownAway) {
  set(kDrop, bury);
  completed = 0;
  gfence();
  const std::vector<char> data(100'000, 1);
  Counter completion;
  for (const size_t bytes : {size_t{8}, data.size()}) {
    ok(LAPI_Amsend(handle, right(), index(kDrop), nullptr, 0, const_cast<char*>(data.data()), bytes,
                   nullptr, nullptr, completion.get()));
  }
  completion.wait(2);
  gfence();
  EXPECT_EQ(completed.load(), 2);
  EXPECT_TRUE(take_reported().empty());
  gfence();
}

void* give_nothing(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                   void**) {
  *comp_h = nullptr;
  return nullptr;
}

TEST(ActiveMessages, AHeaderHandlerThatGivesNothingIsReported) {
  set(kNothing, give_nothing);
  const std::vector<char> data(100'000, 1);
  Counter completion;
  for (const size_t bytes : {size_t{0}, size_t{8}, data.size()}) {
    ok(LAPI_Amsend(handle, right(), index(kNothing), nullptr, 0, const_cast<char*>(data.data()),
                   bytes, nullptr, nullptr, completion.get()));
  }
  completion.wait(3);
  gfence();
  EXPECT_EQ(take_reported(), std::vector<int>(2, LAPI_ERR_HDR_HNDLR_NO_BUFFER));
  gfence();
  ok(LAPI_Amsend(handle, right(), reinterpret_cast<void*>(777), nullptr, 0, nullptr, 0, nullptr,
                 nullptr, nullptr));
  gfence();
  EXPECT_EQ(take_reported(), std::vector<int>{LAPI_ERR_HDR_HNDLR_NOTSET});
  gfence();
  // The address of a handler elsewhere: nothing is mapped as low as this.
  ok(LAPI_Amsend(handle, right(), reinterpret_cast<void*>(0x8000), nullptr, 0, nullptr, 0, nullptr,
                 nullptr, nullptr));
  gfence();
  EXPECT_EQ(take_reported(), std::vector<int>{LAPI_ERR_HDR_HNDLR_NOTSET});
  gfence();
}

// ---- what handlers may do

std::array<int, 6> refusals;

void* try_everything(lapi_handle_t* hndl, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                     void**) {
  lapi_cntr_t counter;
  void* table[64];
  LAPI_Setcntr(*hndl, &counter, 0);
  refusals = {LAPI_Waitcntr(*hndl, &counter, 1, nullptr),
              LAPI_Fence(*hndl),
              LAPI_Gfence(*hndl),
              LAPI_Address_init(*hndl, nullptr, table),
              LAPI_Term(*hndl),
              LAPI_Senv(*hndl, INTERRUPT_SET, 0)};
  *comp_h = nullptr;
  return nullptr;
}

TEST(ActiveMessages, HeaderHandlersMustNotWait) {
  set(kForbidden, try_everything);
  refusals.fill(-1);
  gfence();
  Counter completion;
  ok(LAPI_Amsend(handle, right(), index(kForbidden), nullptr, 0, nullptr, 0, nullptr, nullptr,
                 completion.get()));
  completion.wait(1);
  gfence();
  for (const int code : refusals) EXPECT_EQ(code, LAPI_ERR_IN_HANDLER) << text_of(code);
  gfence();
}

// A handler may send: task 0 asks, the others answer to all.
std::atomic<int> answers;

void* take_answer(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                  void**) {
  ++answers;
  *comp_h = nullptr;
  return nullptr;
}

void* answer(lapi_handle_t* hndl, void*, unsigned*, unsigned long* msg_len, compl_hndlr_t** comp_h,
             void**) {
  const auto* info = reinterpret_cast<lapi_return_info_t*>(msg_len);
  ok(LAPI_Amsend(*hndl, info->src, index(kAnswer), nullptr, 0, nullptr, 0, nullptr, nullptr,
                 nullptr));
  *comp_h = nullptr;
  return nullptr;
}

TEST(ActiveMessages, HeaderHandlersMaySend) {
  answers = 0;
  set(kReply, answer);
  set(kAnswer, take_answer);
  for (unsigned task = 0; task < tasks; ++task) {
    ok(LAPI_Amsend(handle, task, index(kReply), nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr));
  }
  poll_until(answers, static_cast<int>(tasks));
  gfence();
}

// A completion handler in its own thread may wait for something that needs another message.
lapi_cntr_t let_go;

void wait_in_completion(lapi_handle_t* hndl, void*) {
  ok(LAPI_Waitcntr(*hndl, &let_go, 1, nullptr));
  ++completed;
}

void* wait_later(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h, void**) {
  *comp_h = wait_in_completion;
  return nullptr;
}

TEST(ActiveMessages, CompletionHandlersMayWait) {
  completed = 0;
  ok(LAPI_Setcntr(handle, &let_go, 0));
  set(kWait, wait_later);
  const auto counters = addresses_of(&let_go);
  Counter completion;
  ok(LAPI_Amsend(handle, right(), index(kWait), nullptr, 0, nullptr, 0, nullptr, nullptr,
                 completion.get()));
  EXPECT_EQ(completion.value(), 0);
  ok(LAPI_Put(handle, right(), 0, nullptr, nullptr, counters[right()], nullptr, nullptr));
  completion.wait(1);
  gfence();
  EXPECT_EQ(completed.load(), 1);
  gfence();
}

// ---- order and accumulation

std::array<long, 8> sums;
std::array<int, 8> last_of;
std::atomic<int> out_of_order;

struct Step {
  unsigned source;
  int number;
};

void* accumulate(lapi_handle_t*, void* uhdr, unsigned*, unsigned long* msg_len,
                 compl_hndlr_t** comp_h, void**) {
  auto* info = reinterpret_cast<lapi_return_info_t*>(msg_len);
  Step step;
  std::memcpy(&step, uhdr, sizeof step);
  if (step.number != last_of[step.source] + 1) ++out_of_order;
  last_of[step.source] = step.number;
  sums[step.source] += *static_cast<long*>(info->udata_one_pkt_ptr);
  info->ctl_flags = LAPI_BURY_MSG;
  *comp_h = nullptr;
  return nullptr;
}

TEST(ActiveMessages, AccumulateInOrder) {
  sums.fill(0);
  last_of.fill(0);
  out_of_order = 0;
  set(kCount, accumulate);
  for (int i = 1; i <= 1000; ++i) {
    for (unsigned task = 0; task < tasks; ++task) {
      Step step = {me, i};
      long value = i;
      ok(LAPI_Amsend(handle, task, index(kCount), &step, sizeof step, &value, sizeof value, nullptr,
                     nullptr, nullptr));
    }
  }
  gfence();
  EXPECT_EQ(out_of_order.load(), 0);
  for (unsigned task = 0; task < tasks; ++task) EXPECT_EQ(sums[task], 500'500);
  gfence();
}

// ---- part of the data

void* take_some(lapi_handle_t*, void*, unsigned*, unsigned long* msg_len, compl_hndlr_t** comp_h,
                void**) {
  reinterpret_cast<lapi_return_info_t*>(msg_len)->bytes = 100;
  *comp_h = nullptr;
  return arrived.data();
}

TEST(ActiveMessages, AHeaderHandlerMayTakePartOfTheData) {
  set(kBytes, take_some);
  const std::vector<char> data(100'000, 3);
  for (const size_t bytes : {size_t{50}, size_t{500}, data.size()}) {
    arrived.fill(0);
    gfence();
    Counter completion;
    ok(LAPI_Amsend(handle, right(), index(kBytes), nullptr, 0, const_cast<char*>(data.data()),
                   bytes, nullptr, nullptr, completion.get()));
    completion.wait(1);
    gfence();
    EXPECT_EQ(std::count(arrived.begin(), arrived.end(), 3), std::min<long>(bytes, 100));
  }
  gfence();
}

// ---- vectors

struct Vectors {
  std::array<std::array<char, 50'000>, 3> parts;
  std::array<void*, 3> info;
  std::array<unsigned long, 3> len;
  lapi_vec_t vector;
};
Vectors target_vectors;

lapi_vec_t* place_vectors(lapi_handle_t*, void* uhdr, unsigned* uhdr_len, unsigned long* len_vec[],
                          compl_hndlr_t** comp_h, void** user_info) {
  EXPECT_EQ(*uhdr_len, 8u);
  EXPECT_EQ(std::memcmp(uhdr, "header!", 8), 0);
  for (size_t i = 0; i < 3; ++i) {
    target_vectors.info[i] = target_vectors.parts[i].data();
    target_vectors.len[i] = (*len_vec)[i];
  }
  target_vectors.vector = {LAPI_GEN_IOVECTOR, 3, target_vectors.info.data(),
                           target_vectors.len.data()};
  *comp_h = note_completion;
  *user_info = &arrived;
  return &target_vectors.vector;
}

TEST(ActiveMessages, Vectors) {
  static lapi_cntr_t target;
  ok(LAPI_Setcntr(handle, &target, 0));
  set(kVector, place_vectors);
  const auto targets = addresses_of(&target);
  for (const unsigned long size : {10ul, 50'000ul}) {
    completed = 0;
    for (auto& part : target_vectors.parts) part.fill(0);
    gfence();
    std::array<std::vector<char>, 3> parts;
    std::array<void*, 3> info;
    std::array<unsigned long, 3> len;
    for (size_t i = 0; i < 3; ++i) {
      parts[i].assign(size, static_cast<char>(10 * me + i + 1));
      info[i] = parts[i].data();
      len[i] = i == 1 ? 0 : size;
    }
    lapi_vec_t vector = {LAPI_GEN_IOVECTOR, 3, info.data(), len.data()};
    char header[8] = "header!";
    Counter origin;
    Counter completion;
    ok(LAPI_Amsendv(handle, right(), index(kVector), header, sizeof header, &vector,
                    targets[right()], origin.get(), completion.get()));
    origin.wait(1);
    completion.wait(1);
    ok(LAPI_Waitcntr(handle, &target, 1, nullptr));
    EXPECT_EQ(completed.load(), 1);
    for (size_t i = 0; i < 3; ++i) {
      const auto value = static_cast<char>(10 * left() + i + 1);
      const auto count =
          std::count(target_vectors.parts[i].begin(), target_vectors.parts[i].end(), value);
      EXPECT_EQ(count, static_cast<long>(len[i])) << i;
    }
    gfence();
  }
}

TEST(ActiveMessages, AVectorHandlerThatGivesNothingIsReported) {
  set(
      kNoVector,
      +[](lapi_handle_t*, void*, unsigned*, unsigned long**, compl_hndlr_t**,
          void**) -> lapi_vec_t* { return nullptr; });
  char data[8] = {};
  void* info[] = {data};
  unsigned long len[] = {8};
  lapi_vec_t vector = {LAPI_GEN_GENERIC, 1, info, len};
  Counter completion;
  ok(LAPI_Amsendv(handle, right(), index(kNoVector), nullptr, 0, &vector, nullptr, nullptr,
                  completion.get()));
  completion.wait(1);
  gfence();
  EXPECT_EQ(take_reported(), std::vector<int>{LAPI_ERR_HDR_HNDLR_NO_BUFFER});
  gfence();
}

}  // namespace
}  // namespace lapi_test

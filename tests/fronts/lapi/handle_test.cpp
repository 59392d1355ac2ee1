// SPDX-License-Identifier: BSD-3-Clause

// Several handles, their locks, and arguments that LAPI_Init refuses.

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "fixture.h"

namespace lapi_test {
namespace {

int handler_ran_for;

void* note_handle(lapi_handle_t* hndl, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                  void**) {
  handler_ran_for = static_cast<int>(*hndl);
  *comp_h = nullptr;
  return nullptr;
}

TEST(Handles, SeveralAreSeparate) {
  lapi_info_t info = {};
  lapi_handle_t second = 0;
  ok(LAPI_Init(&second, &info));
  EXPECT_EQ(info.protocol, MOBIUS_DEV);
  EXPECT_NE(second, handle);
  ok(LAPI_Addr_set(second, reinterpret_cast<void*>(note_handle), 7));
  void* found = &info;
  ok(LAPI_Addr_get(second, &found, 7));
  EXPECT_EQ(found, reinterpret_cast<void*>(note_handle));
  ok(LAPI_Addr_get(handle, &found, 7));
  EXPECT_NE(found, reinterpret_cast<void*>(note_handle));
  ok(LAPI_Senv(second, ERROR_CHK, 0));
  int value = -1;
  ok(LAPI_Qenv(handle, ERROR_CHK, &value));
  EXPECT_EQ(value, 1);
  handler_ran_for = 0;
  ok(LAPI_Gfence(second));
  lapi_cntr_t counter;
  ok(LAPI_Setcntr(second, &counter, 0));
  ok(LAPI_Amsend(second, right(), reinterpret_cast<void*>(7), nullptr, 0, nullptr, 0, nullptr,
                 nullptr, &counter));
  ok(LAPI_Waitcntr(second, &counter, 1, nullptr));
  ok(LAPI_Gfence(second));
  EXPECT_EQ(handler_ran_for, static_cast<int>(second));
  ok(LAPI_Term(second));
  refused(LAPI_Term(second), LAPI_ERR_HNDL_INVALID, "LAPI_Term");
  gfence();
}

TEST(Handles, AllOfThem) {
  int most = 0;
  ok(LAPI_Qenv(handle, MAX_PORTS, &most));
  std::vector<lapi_handle_t> more;
  lapi_info_t info = {};
  for (int i = 1; i < most; ++i) {
    lapi_handle_t next = 0;
    info = {};
    ok(LAPI_Init(&next, &info));
    more.push_back(next);
  }
  lapi_handle_t none = 99;
  info = {};
  refused(LAPI_Init(&none, &info), LAPI_ERR_ALL_HNDL_IN_USE, "LAPI_Init");
  EXPECT_EQ(none, 99u);
  for (const lapi_handle_t each : more) ok(LAPI_Term(each));
  info = {};
  info.instance_no = 9;
  ok(LAPI_Init(&none, &info));
  EXPECT_EQ(none, 9u);
  info = {};
  info.instance_no = 9;
  refused(LAPI_Init(&none, &info), LAPI_ERR_ALL_HNDL_IN_USE, "LAPI_Init");
  ok(LAPI_Term(9));
}

TEST(Handles, InitRefusesFieldsThatAreNotZero) {
  lapi_info_t info = {};
  lapi_handle_t other = 99;
  refused(LAPI_Init(nullptr, &info), LAPI_ERR_RET_PTR_NULL, "LAPI_Init");
  refused(LAPI_Init(&other, nullptr), LAPI_ERR_RET_PTR_NULL, "LAPI_Init");
  info.info6 = 1;
  refused(LAPI_Init(&other, &info), LAPI_ERR_INFO_NONZERO_INFO, "LAPI_Init");
  info = {};
  info.instance_no = 17;
  refused(LAPI_Init(&other, &info), LAPI_ERR_INFO_NONZERO_INFO, "LAPI_Init");
  info = {};
  info.num_compl_hndlr_thr = -1;
  refused(LAPI_Init(&other, &info), LAPI_ERR_INFO_NONZERO_INFO, "LAPI_Init");
  EXPECT_EQ(other, 99u);
}

TEST(Handles, OldLibrariesHaveNoStatus) {
  lapi_info_t info = {};
  info.lib_vers = L1_LIB;
  lapi_handle_t old = 0;
  ok(LAPI_Init(&old, &info));
  lapi_cntr_t counter;
  ok(LAPI_Setcntr(old, &counter, 1));
  refused(LAPI_Nopoll_wait(old, &counter, 1, nullptr), LAPI_ERR_LIB_VERS, "LAPI_Nopoll_wait");
  refused(LAPI_Setcntr_wstatus(old, &counter, 0, nullptr, nullptr), LAPI_ERR_LIB_VERS,
          "LAPI_Setcntr_wstatus");
  ok(LAPI_Term(old));
}

int threads_begun;

void begin_thread() { __atomic_fetch_add(&threads_begun, 1, __ATOMIC_SEQ_CST); }
void do_nothing(lapi_handle_t*, void*) {}
void* complete_later(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                     void**) {
  *comp_h = do_nothing;
  return nullptr;
}

TEST(Handles, CompletionThreadsBeginAsAsked) {
  com_thread_info_t thread = {nullptr, begin_thread};
  lapi_info_t info = {};
  info.num_compl_hndlr_thr = 3;
  info.lapi_thread_attr = &thread;
  lapi_handle_t other = 0;
  threads_begun = 0;
  ok(LAPI_Init(&other, &info));
  ok(LAPI_Addr_set(other, reinterpret_cast<void*>(complete_later), 1));
  ok(LAPI_Gfence(other));
  lapi_cntr_t counter;
  ok(LAPI_Setcntr(other, &counter, 0));
  for (int i = 0; i < 20; ++i) {
    ok(LAPI_Amsend(other, right(), reinterpret_cast<void*>(1), nullptr, 0, nullptr, 0, nullptr,
                   nullptr, &counter));
  }
  ok(LAPI_Waitcntr(other, &counter, 20, nullptr));
  ok(LAPI_Term(other));
  EXPECT_GE(threads_begun, 1);
  EXPECT_LE(threads_begun, 3);
  gfence();
}

// ---- the end of a handle

// Opens a handle whose index 1 is a header handler; each task then sends a message to the next one.
lapi_handle_t open_and_send(hdr_hndlr_t* handler) {
  lapi_info_t info = {};
  lapi_handle_t other = 0;
  ok(LAPI_Init(&other, &info));
  ok(LAPI_Addr_set(other, reinterpret_cast<void*>(handler), 1));
  ok(LAPI_Gfence(other));
  ok(LAPI_Amsend(other, right(), reinterpret_cast<void*>(1), nullptr, 0, nullptr, 0, nullptr,
                 nullptr, nullptr));
  return other;
}

void poll_until(const std::atomic<bool>& flag) {
  while (!flag.load()) {
    ok(LAPI_Probe(handle));
    sched_yield();
  }
}

std::atomic<bool> handler_began;
std::atomic<bool> may_end;
std::atomic<bool> handler_ended;

void end_handle(lapi_handle_t* hndl, void*) {
  ok(LAPI_Gfence(*hndl));
  ok(LAPI_Term(*hndl));
  refused(LAPI_Fence(*hndl), LAPI_ERR_HNDL_INVALID, "LAPI_Fence");
  handler_ended = true;
}
void* end_later(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h, void**) {
  *comp_h = end_handle;
  return nullptr;
}

TEST(Handles, ACompletionHandlerMayEndItsHandle) {
  handler_ended = false;
  static_cast<void>(open_and_send(end_later));
  poll_until(handler_ended);
  gfence();
}

void stay(lapi_handle_t* hndl, void*) {
  handler_began = true;
  while (!may_end.load()) usleep(1000);
  refused(LAPI_Fence(*hndl), LAPI_ERR_HNDL_INVALID, "LAPI_Fence");
  handler_ended = true;
}
void* stay_later(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h, void**) {
  *comp_h = stay;
  return nullptr;
}

TEST(Handles, EndThoughACompletionHandlerStays) {
  handler_began = may_end = handler_ended = false;
  const lapi_handle_t other = open_and_send(stay_later);
  poll_until(handler_began);
  ok(LAPI_Term(other));
  may_end = true;
  poll_until(handler_ended);
  gfence();
}

std::chrono::nanoseconds own_processor_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Takes more than a second, as on a machine that has other work, and computes in between.
void compute(lapi_handle_t* hndl, void*) {
  handler_began = true;
  for (int part = 0; part < 3; ++part) {
    const auto begin = own_processor_time();
    while (own_processor_time() - begin < std::chrono::milliseconds(100)) {
    }
    usleep(350000);
  }
  ok(LAPI_Fence(*hndl));
  handler_ended = true;
}
void* compute_later(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** comp_h,
                    void**) {
  *comp_h = compute;
  return nullptr;
}

TEST(Handles, EndAfterACompletionHandlerThatComputes) {
  handler_began = handler_ended = false;
  const lapi_handle_t other = open_and_send(compute_later);
  poll_until(handler_began);
  ok(LAPI_Term(other));
  EXPECT_TRUE(handler_ended);
  gfence();
}

TEST(Handles, EndThoughAThreadGoesOnSending) {
  const lapi_handle_t other = open_and_send(complete_later);
  std::atomic<bool> has_begun = false;
  std::thread sender([&] {
    int result = LAPI_SUCCESS;
    while (result == LAPI_SUCCESS) {
      result = LAPI_Amsend(other, right(), reinterpret_cast<void*>(1), nullptr, 0, nullptr, 0,
                           nullptr, nullptr, nullptr);
      has_begun = true;
      sched_yield();
    }
    refused(result, LAPI_ERR_HNDL_INVALID, "LAPI_Amsend");
  });
  poll_until(has_begun);
  ok(LAPI_Term(other));
  sender.join();
  gfence();
}

TEST(Handles, LocksExcludeThreads) {
  lapi_util_t util = {};
  util.Util_type = LAPI_GET_THREAD_FUNC;
  ok(LAPI_Util(handle, &util));
  const lapi_thread_func_t& lock = util.ThreadFunc;
  ok(lock.mutex_lock(handle));
  EXPECT_EQ(lock.mutex_lock(handle), EDEADLK);
  pthread_t owner = {};
  ok(lock.mutex_getowner(handle, &owner));
  EXPECT_NE(pthread_equal(owner, pthread_self()), 0);
  std::thread([&] {
    EXPECT_EQ(lock.mutex_trylock(handle), EBUSY);
    EXPECT_EQ(lock.mutex_unlock(handle), EPERM);
  }).join();
  ok(lock.mutex_unlock(handle));
  EXPECT_EQ(lock.mutex_unlock(handle), EPERM);
  ok(lock.mutex_trylock(handle));
  ok(lock.mutex_unlock(handle));
  EXPECT_EQ(lock.mutex_lock(13), LAPI_ERR_HNDL_INVALID);
  // A condition.
  lapi_cond_t condition;
  ok(lock.cond_init(handle, &condition));
  bool go = false;
  ok(lock.mutex_lock(handle));
  std::thread other([&] {
    ok(lock.mutex_lock(handle));
    go = true;
    ok(lock.cond_signal(handle, &condition));
    ok(lock.mutex_unlock(handle));
  });
  while (!go) ok(lock.cond_wait(handle, &condition));
  ok(lock.mutex_unlock(handle));
  other.join();
  ok(lock.mutex_lock(handle));
  timespec past = {1, 0};
  EXPECT_EQ(lock.cond_timedwait(handle, &condition, &past), ETIMEDOUT);
  ok(lock.mutex_unlock(handle));
  ok(lock.cond_destroy(handle, &condition));
  gfence();
}

}  // namespace
}  // namespace lapi_test

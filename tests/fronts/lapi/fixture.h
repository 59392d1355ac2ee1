// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>

#include <gtest/gtest.h>
#include <lapi.h>

#include <string>
#include <vector>

namespace lapi_test {

extern lapi_handle_t handle;  // the handle of most tests
extern unsigned me;
extern unsigned tasks;

// Returns the codes that the error handler got, and forgets them.
std::vector<int> take_reported();

inline unsigned right() { return (me + 1) % tasks; }
inline unsigned left() { return (me + tasks - 1) % tasks; }

// Whether a task does not share memory with this one.
inline bool is_far(unsigned task) { return mob_is_host_mate(static_cast<mob_rank_t>(task)) == 0; }

inline std::string text_of(int code) {
  char text[LAPI_MAX_ERR_STRING] = {};
  LAPI_Msg_string(code, text);
  return text;
}

inline void ok(int code) { EXPECT_EQ(code, LAPI_SUCCESS) << text_of(code); }
inline void gfence() { ok(LAPI_Gfence(handle)); }

// Every task's address of an object, by task.
template <typename T>
std::vector<T*> addresses_of(T* mine) {
  std::vector<void*> all(tasks);
  ok(LAPI_Address_init(handle, const_cast<void*>(static_cast<const volatile void*>(mine)),
                       all.data()));
  std::vector<T*> typed;
  for (void* each : all) typed.push_back(static_cast<T*>(each));
  return typed;
}

class Counter {
 public:
  explicit Counter(int value = 0) { ok(LAPI_Setcntr(handle, &counter_, value)); }
  lapi_cntr_t* get() { return &counter_; }
  int value() {
    int result = -1;
    ok(LAPI_Getcntr(handle, &counter_, &result));
    return result;
  }
  // Waits for `value`, returns the value after the subtraction.
  int wait(int value) {
    int left = -1;
    ok(LAPI_Waitcntr(handle, &counter_, value, &left));
    return left;
  }

 private:
  lapi_cntr_t counter_;
};

// Expects a code whose text names the call.
inline void refused(int code, int expected, const std::string& call) {
  EXPECT_EQ(code, expected) << text_of(code) << " instead of " << text_of(expected);
  EXPECT_NE(text_of(code).find(call), std::string::npos) << text_of(code);
}

}  // namespace lapi_test

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Error reports. The function that detects an error reports it once; callers return the status and
// add nothing.

#include <mobius/status.h>

#include <utility>

namespace mobius::base {

extern constinit thread_local bool acts_for_others [[gnu::tls_model("initial-exec")]];

// True on a thread that runs a message handler: errors of the handler do not belong to the
// interrupted call.
extern constinit thread_local bool in_handler [[gnu::tls_model("initial-exec")]];

// Scope in which the calling thread serves a request of another process inside a call of its own.
// Errors in this scope are recorded aside; afterwards mob_last_error() is what it was before.
class ErrorsOfOthers {
 public:
  ErrorsOfOthers() : before_(std::exchange(acts_for_others, true)) {}
  ~ErrorsOfOthers() { acts_for_others = before_; }
  ErrorsOfOthers(const ErrorsOfOthers&) = delete;
  ErrorsOfOthers& operator=(const ErrorsOfOthers&) = delete;

 private:
  const bool before_;
};

// Records the text as mob_last_error() of the calling thread and returns `status`, so that `return
// fail(MOB_ERR_RANGE, "...")` is the whole error path. Text beyond 511 bytes is cut.
[[gnu::format(printf, 2, 3), gnu::cold]] mob_status_t fail(mob_status_t status, const char* format,
                                                           ...);

// As fail(), and appends ": " and the text of `error_number`. Pass errno before another call can
// change it.
[[gnu::format(printf, 3, 4), gnu::cold]] mob_status_t fail_errno(mob_status_t status,
                                                                 int error_number,
                                                                 const char* format, ...);

// Puts the name of the call before the text of an error that names no call.
[[gnu::cold]] mob_status_t name_call(const char* call, mob_status_t status);

// Adds the call's name to an error that was detected by code that does not know which call it
// serves.
inline mob_status_t told_by(const char* call, mob_status_t status) {
  return status == MOB_OK ? status : name_call(call, status);
}

}  // namespace mobius::base

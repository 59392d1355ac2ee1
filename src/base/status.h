// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Reporting an error once, where it is detected. Callers pass the status on without adding to it.

#include <mobius/status.h>

#include <utility>

namespace mobius::base {

extern constinit thread_local bool acts_for_others [[gnu::tls_model("initial-exec")]];

// True on a thread that is running a handler of a message: errors are not its own either.
extern constinit thread_local bool in_handler [[gnu::tls_model("initial-exec")]];

// While a thread does what another process asked for, in a call of its own, errors are not its own:
// they are recorded aside, and mob_last_error() is afterwards what it was.
class ErrorsOfOthers {
 public:
  ErrorsOfOthers() : before_(std::exchange(acts_for_others, true)) {}
  ~ErrorsOfOthers() { acts_for_others = before_; }
  ErrorsOfOthers(const ErrorsOfOthers&) = delete;
  ErrorsOfOthers& operator=(const ErrorsOfOthers&) = delete;

 private:
  const bool before_;
};

// Records the text as mob_last_error() of the calling thread and returns `status`, so that
// `return fail(MOB_ERR_RANK, "...")` is the whole error path. Longer texts are cut at 511 bytes.
[[gnu::format(printf, 2, 3), gnu::cold]] mob_status_t fail(mob_status_t status, const char* format,
                                                           ...);

// As fail(), and appends ": " and the text of `error_number`. Pass errno before anything else
// can change it.
[[gnu::format(printf, 3, 4), gnu::cold]] mob_status_t fail_errno(mob_status_t status,
                                                                 int error_number,
                                                                 const char* format, ...);

// Puts the name of a call before the text of an error that names none.
[[gnu::cold]] mob_status_t name_call(const char* call, mob_status_t status);

// What is found deep below, or later, does not know the call that it is told by.
inline mob_status_t told_by(const char* call, mob_status_t status) {
  return status == MOB_OK ? status : name_call(call, status);
}

}  // namespace mobius::base

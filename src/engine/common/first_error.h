// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The first error of an operation that runs in the background. The thread that finds it keeps it
// with its text; a thread that asks later gets both.

#include <mobius/status.h>

#include <memory>

namespace mobius::engine {

// Guarded by whoever owns it. Nothing is allocated unless there is an error.
class FirstError {
 public:
  // Keeps mob_last_error() of the calling thread if `status` is an error and the first; whether it
  // did.
  bool keep(mob_status_t status) {
    if (status == MOB_OK || status_ != MOB_OK) [[likely]] {
      return false;
    }
    keep_text(status);
    return true;
  }

  mob_status_t status() const { return status_; }

  // Makes the kept error the calling thread's own, as if the operation had failed there.
  mob_status_t tell() const { return status_ == MOB_OK ? MOB_OK : tell_text(); }

 private:
  [[gnu::cold]] void keep_text(mob_status_t status);
  [[gnu::cold]] mob_status_t tell_text() const;

  mob_status_t status_ = MOB_OK;
  std::unique_ptr<char[]> text_;  // null: there was no memory for it
};

}  // namespace mobius::engine

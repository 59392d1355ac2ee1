// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Reporting an error once, where it is detected. Callers pass the status on without adding to it.

#include <mobius/status.h>

namespace mobius::base {

// Records the text as mob_last_error() of the calling thread and returns `status`, so that
// `return fail(MOB_ERR_RANK, "...")` is the whole error path. Longer texts are cut at 511 bytes.
[[gnu::format(printf, 2, 3), gnu::cold]] mob_status_t fail(mob_status_t status, const char* format,
                                                           ...);

// As fail(), and appends ": " and the text of `error_number`. Pass errno before anything else
// can change it.
[[gnu::format(printf, 3, 4), gnu::cold]] mob_status_t fail_errno(mob_status_t status,
                                                                 int error_number,
                                                                 const char* format, ...);

}  // namespace mobius::base

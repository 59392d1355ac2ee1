// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What PMIx tells its users by calling a function, of which it does not know for whom: deaths of
// the job's processes, and that the server is gone. Any thread.

#include <mobius/job.h>
#include <mobius/status.h>

#include <pmix.h>

namespace mobius::job::pmix {

// From now on, of the job of `self`. If the server goes, this process ends, with a line on standard
// error, unless `survive`.
void begin_events(const pmix_proc_t& self, bool survive);
// What comes from now on is of no interest.
void end_events();

// To be registered with PMIx.
void on_event(size_t handler, pmix_status_t event, const pmix_proc_t* source, pmix_info_t* info,
              size_t info_count, pmix_info_t* results, size_t result_count,
              pmix_event_notification_cbfunc_fn_t done, void* data);

// For those who wait in mob_init(): MOB_ERR_PEER once the server is gone or somebody died.
mob_status_t check_events();
bool is_reported_dead(mob_rank_t rank);

}  // namespace mobius::job::pmix

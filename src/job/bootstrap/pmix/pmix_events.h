// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Events that PMIx reports through a callback without context: deaths of processes of the job and
// the loss of the server. Any thread may call these functions.

#include <mobius/job.h>
#include <mobius/status.h>

#include <pmix.h>

#include <string>

namespace mobius::job::pmix {

// Starts to record events of the job of `self`. If the server goes away, this process ends with a
// line on standard error unless `survive`.
void begin_events(const pmix_proc_t& self, bool survive);
// Ignores all further events.
void end_events();

// The callback to register with PMIx.
void on_event(size_t handler, pmix_status_t event, const pmix_proc_t* source, pmix_info_t* info,
              size_t info_count, pmix_info_t* results, size_t result_count,
              pmix_event_notification_cbfunc_fn_t done, void* data);

// For waits in mob_init(): MOB_ERR_PEER once the server is gone or a process has died.
mob_status_t check_events();
bool is_reported_dead(mob_rank_t rank);

// The end of another job that the launcher has started.
struct JobEnd {
  mob_rank_t rank = -1;  // of the process that ended it; -1: none, they have ended by themselves
  int code = 0;          // the launcher's exit code for it
};
// Whether the launcher has reported it.
bool has_ended(const char* job, JobEnd* end);

// From now on this process ends with a line on standard error when the job does, or has ended, by
// an error; unless `survive`.
void tie_to(const char* job);
void untie(const char* job);

}  // namespace mobius::job::pmix

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The functions of libpmix, loaded on demand.

#include <mobius/status.h>

#include <pmix.h>

namespace mobius::job::pmix {

struct Library {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Initialized) initialized;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Abort) abort;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence_nb) fence_nb;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Register_event_handler) register_event_handler;
  decltype(&PMIx_Deregister_event_handler) deregister_event_handler;
  decltype(&PMIx_Spawn_nb) spawn_nb;
  decltype(&PMIx_Job_control_nb) job_control_nb;
  decltype(&PMIx_Error_string) error_string;
  decltype(&PMIx_Get_version) get_version;
};

// Loads libpmix, or finds the one that an MPI in this process has loaded. It is never unloaded,
// because its threads may go on running. `*library` stays valid.
mob_status_t load(const Library** library);

}  // namespace mobius::job::pmix

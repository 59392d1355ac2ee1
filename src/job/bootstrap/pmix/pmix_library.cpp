// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/pmix/pmix_library.h"

#include <dlfcn.h>

#include "base/status.h"

namespace mobius::job::pmix {
namespace {

// The name from PMIx 2.0 to at least 6.
constexpr const char* kName = "libpmix.so.2";

template <typename Function>
bool find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

bool find_all(void* handle, Library* found) {
  return find(handle, "PMIx_Init", &found->init) &&
         find(handle, "PMIx_Initialized", &found->initialized) &&
         find(handle, "PMIx_Finalize", &found->finalize) &&
         find(handle, "PMIx_Abort", &found->abort) && find(handle, "PMIx_Put", &found->put) &&
         find(handle, "PMIx_Commit", &found->commit) &&
         find(handle, "PMIx_Fence_nb", &found->fence_nb) && find(handle, "PMIx_Get", &found->get) &&
         find(handle, "PMIx_Register_event_handler", &found->register_event_handler) &&
         find(handle, "PMIx_Deregister_event_handler", &found->deregister_event_handler) &&
         find(handle, "PMIx_Spawn_nb", &found->spawn_nb) &&
         find(handle, "PMIx_Job_control_nb", &found->job_control_nb) &&
         find(handle, "PMIx_Error_string", &found->error_string) &&
         find(handle, "PMIx_Get_version", &found->get_version);
}

}  // namespace

mob_status_t load(const Library** library) {
  static Library loaded;
  static bool is_loaded = false;
  *library = &loaded;
  if (is_loaded) return MOB_OK;
  void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* reason = handle == nullptr ? dlerror() : "a function is missing in it";
  if (handle != nullptr) is_loaded = find_all(handle, &loaded);
  if (is_loaded) return MOB_OK;
  return base::fail(MOB_ERR_SYSTEM,
                    "mob_init: a PMIx launcher started this process, and its library cannot be "
                    "used: %s; install it (Debian: libpmix2) or add its folder to "
                    "LD_LIBRARY_PATH; MOBIUS_LAUNCHER=none makes each process a job of one",
                    reason);
}

}  // namespace mobius::job::pmix

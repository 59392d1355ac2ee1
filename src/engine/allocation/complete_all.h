// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/allocation/allocation_services.h"
#include "engine/message/message.h"
#include "engine/progress/completion.h"

namespace mobius::engine {

// Before memory is freed: completes what mob_flush_all() completes, and the program's messages,
// because their handlers may put payloads there. A message to a dead rank puts nothing anywhere,
// and every flush of that rank reports it, so it is no error here.
inline mob_status_t complete_all(const AllocationServices& services, const char* call) {
  const mob_status_t status = services.completion.complete_all(call);
  if (!services.messages.sent_by_program()) return status;
  const mob_status_t sent = services.messages.flush_living(Whose::kProgram);
  return status != MOB_OK ? status : sent;
}

}  // namespace mobius::engine

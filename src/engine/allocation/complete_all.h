// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/engine.h"
#include "engine/message/message.h"

namespace mobius::engine {

// Before memory goes: as mob_flush_all(), the messages of the program included, whose handlers may
// put payloads there.
inline mob_status_t complete_all(Engine& engine, const char* call) {
  const mob_status_t status = engine.complete_transfers(call);
  if (!engine.messages().sent_by_program()) return status;
  const mob_status_t sent = engine.messages().flush_all(Whose::kProgram);
  return status != MOB_OK ? status : sent;
}

}  // namespace mobius::engine

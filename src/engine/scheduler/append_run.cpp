// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler/append_run.h"

namespace mobius::engine {
namespace {

constinit AppendRun no_append_run;

}  // namespace

void leave_append_run() { set_last_append_run(no_append_run); }

}  // namespace mobius::engine

constinit mob_append_run_t_* mob_append_run_ = &mobius::engine::no_append_run;

// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler/stretch.h"

namespace mobius::engine {
namespace {

constinit Stretch no_stretch;

}  // namespace

void leave_stretch() { set_last_stretch(no_stretch); }

}  // namespace mobius::engine

constinit mob_stretch_t_* mob_stretch_ = &mobius::engine::no_stretch;

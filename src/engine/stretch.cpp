// SPDX-License-Identifier: BSD-3-Clause
#include "engine/stretch.h"

namespace mobius::engine {
namespace {

constinit Stretch no_stretch;

}  // namespace

constinit std::atomic<Stretch*> last_stretch = &no_stretch;

void leave_stretch() { last_stretch.store(&no_stretch, std::memory_order_relaxed); }

}  // namespace mobius::engine

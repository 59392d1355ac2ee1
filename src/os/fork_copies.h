// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared pages of the program of which a child of fork() gets a copy, as of all other memory of the
// program. fork() returns in the parent when the child has it. Children that share the parent's
// memory until they call exec() (vfork(), posix_spawn(), system()) need none and wait for nothing.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

#include "os/pages.h"

namespace mobius::os {

// Whole pages that make_shared() moved, until end_copies() of the same start. Any thread.
mob_status_t begin_copies(uintptr_t start, size_t bytes, SharedPlace place);
void end_copies(uintptr_t start);

// Keeps quiet whoever else writes to such pages while they are copied: `before` and `after` are
// called by the thread that forks, in the parent, unless there are no such pages; `in_child` in the
// place of `after` in the child, which has neither such pages nor guards from then on.
struct ForkGuard {
  void* context;
  void (*before)(void* context);
  void (*after)(void* context);
  void (*in_child)(void* context);
};
void add_fork_guard(const ForkGuard& guard);
void remove_fork_guard(const void* context);

}  // namespace mobius::os

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared pages of the program that a child of fork() gets as a copy, like all other memory of the
// program. fork() returns in the parent when the child has the copy. Children that share the
// parent's memory until they call exec() (vfork(), posix_spawn(), system()) need no copy and wait
// for nothing.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

#include "os/memory/pages.h"

namespace mobius::os {

// Registers whole pages that make_shared() moved, until end_copies() with the same start and
// place. Meanwhile they may also be a view of their place (private_views.h), of which a child gets
// a copy, too. Any thread.
mob_status_t begin_copies(uintptr_t start, size_t bytes, SharedPlace place);
void end_copies(uintptr_t start, SharedPlace place);

// Stops other writers to such pages while they are copied. The forking thread calls `before` and
// `after` in the parent, unless there are no such pages. The child calls `in_child` instead of
// `after`; from then on it has neither such pages nor guards.
struct ForkGuard {
  void* context;
  void (*before)(void* context);
  void (*after)(void* context);
  void (*in_child)(void* context);
};
void add_fork_guard(const ForkGuard& guard);
void remove_fork_guard(const void* context);

}  // namespace mobius::os

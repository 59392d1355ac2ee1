// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Parts that one process makes for itself, without the others. They reach it like any other; what
// they still remember of it after it is gone does no harm (Engine::close_chunks()).

#include "engine/chunk_table.h"

namespace mobius::engine {

class Engine;

// A part of `bytes` (> 0) bytes of zeros that this process owns, its memory reserved. Any thread.
mob_status_t make_part(Engine& engine, uint64_t bytes, Part* part);

// Gives it back. Nobody uses it any more. Any thread.
void drop_part(Engine& engine, const Part& part);

// MOB_ERR_MEMORY where the host has less than `bytes` bytes left: asked first, because the kernel
// may rather end processes than refuse.
mob_status_t check_available(uint64_t bytes);

}  // namespace mobius::engine

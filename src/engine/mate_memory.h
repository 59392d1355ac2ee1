// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Memory of another process of this host, any of it: copied through a mapping where there is one,
// else by the kernel (cross-memory attach).

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>

namespace mobius::engine {

class Engine;

// `remote` of `rank` as a pointer of this process; null if it has no such.
void* mapped(Engine& engine, mob_rank_t rank, uintptr_t remote, size_t bytes);

// Copies between this process and `rank`; false if that is not to be had. `local` is written unless
// `put`.
bool copy_with_mate(Engine& engine, mob_rank_t rank, uintptr_t remote, void* local, size_t bytes,
                    bool put);

}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/translation_cache.h"

namespace {

// In .bss: pages of ranks that are never used cost nothing.
constinit mob_target_t_ entries[size_t{2} << MOB_RANK_INDEX_BITS_] = {};

}  // namespace

mob_target_t_* const mob_targets_ = entries;

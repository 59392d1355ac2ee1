// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Approximate costs of the paths to exposed memory of a local peer. ExposedPath::find_route()
// chooses between them by these numbers.

#include <cstddef>

namespace mobius::engine {

inline constexpr size_t kPieceNs = 150;  // one piece by cross-memory attach
// The kernel's copy, beside the cost of the pieces.
inline constexpr size_t kKernelBytesPerNs = 12;
// Waking the target's progress thread and waiting for its answer costs about as much as 60 pieces.
// Transfers through a stage copy everything twice.
inline constexpr size_t kServiceNs = 10'000;
inline constexpr size_t kStageBytesPerNs = 10;
// By then a waiter that was called on the same processor has answered.
inline constexpr size_t kCallNs = 8'000;

}  // namespace mobius::engine

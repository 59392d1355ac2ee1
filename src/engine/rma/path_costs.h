// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// About what the paths to exposed memory of a local peer cost. ExposedPath::find_route() chooses
// between them by these numbers.

#include <cstddef>

namespace mobius::engine {

inline constexpr size_t kPieceNs = 150;  // of cross-memory attach
// Beside what pieces cost, the kernel copies.
inline constexpr size_t kKernelBytesPerNs = 12;
// Waking the target's progress and being answered costs about as much as 60 pieces, and the way
// over a stage copies everything twice.
inline constexpr size_t kServiceNs = 10'000;
inline constexpr size_t kStageBytesPerNs = 10;
// A waiter that is called on the same processor has answered by then.
inline constexpr size_t kCallNs = 8'000;

}  // namespace mobius::engine

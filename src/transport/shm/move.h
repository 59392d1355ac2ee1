// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "transport/shm/shape.h"

namespace mobius::transport {

// Carries out a put (`to_remote`) or a get. This process reaches a remote address at that address
// plus `remote_delta`. The two sides must not overlap.
void move(const Shape& shape, ptrdiff_t remote_delta, bool to_remote);

}  // namespace mobius::transport

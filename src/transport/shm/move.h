// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "transport/shm/shape.h"

namespace mobius::transport {

// Performs a put (`to_remote`) or a get. A remote address is reached at itself plus `remote_delta`
// in this process. The two sides must not overlap.
void move(const Shape& shape, ptrdiff_t remote_delta, bool to_remote);

}  // namespace mobius::transport

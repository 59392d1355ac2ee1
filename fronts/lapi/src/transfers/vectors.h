// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Vectors: checks, and conversion to lists of spans.

#include <mobius/transfer.h>

#include <lapi.h>

#include <vector>

namespace lapi {

struct Context;

// Selects one of the two vectors of a transfer, for the code of an error.
enum class Side { kOrigin, kTarget };

int check_vector(const char* call, const lapi_vec_t* vector, Side side);
// Checks both vectors, and that they fit each other.
int check_vectors(const char* call, const lapi_vec_t* tgt_vec, const lapi_vec_t* org_vec);

// Bytes of a checked vector.
unsigned long total_bytes(const lapi_vec_t& vector);
// Its spans in order, without those of 0 bytes.
std::vector<mob_span_t> spans_of(const lapi_vec_t& vector);

}  // namespace lapi

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Vectors: checked, and as lists of spans.

#include <mobius/transfer.h>

#include <lapi.h>

#include <vector>

namespace lapi {

struct Context;

// Which of the two vectors of a transfer is meant, for the code of an error.
enum class Side { kOrigin, kTarget };

int check_vector(const char* call, const lapi_vec_t* vector, Side side);
// Also that both fit each other.
int check_vectors(const char* call, const lapi_vec_t* tgt_vec, const lapi_vec_t* org_vec);

// Bytes of a checked vector.
unsigned long total_bytes(const lapi_vec_t& vector);
// Its spans in order; those of no bytes are left out.
std::vector<mob_span_t> spans_of(const lapi_vec_t& vector);

}  // namespace lapi

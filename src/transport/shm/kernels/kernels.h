// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Loops that gain from wide registers. They are compiled once per instruction set from the same
// text (kernels_body.h), and chosen when the library is loaded. They do not use ifunc, because
// sanitizers and static libraries do not support it.

#include <mobius/transfer.h>
#include <mobius/types.h>

#include <cstddef>
#include <cstdint>

namespace mobius::transport {

// `count` runs of equal length, at equal distances on each side.
struct Rows {
  char* to;
  const char* from;
  ptrdiff_t to_stride;
  ptrdiff_t from_stride;
  size_t count;
};

inline Rows one_row(void* to, const void* from) {
  return {static_cast<char*>(to), static_cast<const char*>(from), 0, 0, 1};
}

// In each row, to[i] := to[i] op from[i] for `count` elements; see element.h.
using Combine = void (*)(const Rows& rows, size_t count, const void* scale, void* fetched);

// Summary of a list of spans, computed without a branch per span.
struct SpanSummary {
  size_t total;         // bytes; may have overflowed if any span has 2^63 bytes or more
  uintptr_t lowest;     // first byte; this and `highest` compare addresses as signed numbers
  uintptr_t highest;    // one past the last byte
  uintptr_t addresses;  // all addresses, or-ed
  size_t bytes;         // all sizes, or-ed
  size_t differ;        // differences of sizes from the first span's, or-ed
  size_t unpaired;      // differences of sizes from the partner's in the other list, or-ed
  uint64_t missing;     // the highest bit is set if an address or size is 0, or has that bit
};

struct Kernels {
  const char* name;  // of the instruction set

  // Moves rows of `bytes` bytes, 1 ≤ bytes ≤ kRowBytesMax.
  void (*move_rows)(const Rows& rows, size_t bytes);

  // Moves rows of `bytes` ≥ kStreamBytesMin bytes with stores that bypass the caches, where the
  // processor has them, and orders these before all later stores. For transfers larger than the
  // caches.
  void (*stream)(const Rows& rows, size_t bytes);

  // Summarises `count` ≥ 1 spans; `fellows` are as many, or null.
  void (*look_over)(const mob_span_t* spans, size_t count, const mob_span_t* fellows,
                    SpanSummary* summary);

  Combine combine[MOB_OP_COUNT][MOB_TYPE_COUNT];  // null where the operation is not defined
};

inline constexpr size_t kRowBytesMax = 4096;
inline constexpr size_t kStreamBytesMin = 64;

extern const Kernels kBaseKernels;
extern const Kernels kAvx2Kernels;    // x86-64 only
extern const Kernels kAvx512Kernels;  // x86-64 only

// Whether long runs gain from prefetching the place of the next run. Depends on the processor, as
// kernels() does.
extern bool asks_for_next_run;

// The best set that this processor has.
const Kernels& kernels();

}  // namespace mobius::transport

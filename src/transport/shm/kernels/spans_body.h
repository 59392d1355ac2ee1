// SPDX-License-Identifier: BSD-3-Clause
// Part of kernels_body.h: the summary of a list of spans.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/shm/kernels/kernels.h"
#include "transport/shm/kernels/move_body.h"

namespace mobius::transport {
namespace {

static_assert(sizeof(mob_span_t) == 16 && offsetof(mob_span_t, bytes) == 8);

// The number of spans in a register: addresses in the even lanes, sizes in the odd lanes.
constexpr size_t kSpansAtOnce = kWidest / sizeof(mob_span_t);
constexpr size_t kLanes = 2 * kSpansAtOnce;
typedef uint64_t SpanLanes __attribute__((vector_size(kLanes * 8)));
typedef int64_t SignedLanes __attribute__((vector_size(kLanes * 8)));
typedef uint64_t SpanLanesAnywhere __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));

[[gnu::always_inline]] inline SpanLanes load_spans(const mob_span_t* spans) {
  return *reinterpret_cast<const SpanLanesAnywhere*>(spans);
}

// The lesser value of each lane, compared as signed numbers.
[[gnu::always_inline]] inline SpanLanes lower(SpanLanes a, SpanLanes b) {
  return reinterpret_cast<SignedLanes>(a) < reinterpret_cast<SignedLanes>(b) ? a : b;
}
[[gnu::always_inline]] inline SpanLanes higher(SpanLanes a, SpanLanes b) {
  return reinterpret_cast<SignedLanes>(a) > reinterpret_cast<SignedLanes>(b) ? a : b;
}

// Swaps each span's two lanes.
template <typename Lanes>
[[gnu::always_inline]] inline Lanes swapped(Lanes lanes) {
  if constexpr (sizeof(Lanes) == 64) {
    return __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2, 5, 4, 7, 6);
  } else if constexpr (sizeof(Lanes) == 32) {
    return __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2);
  } else {
    return __builtin_shufflevector(lanes, lanes, 1, 0);
  }
}

struct SpanLook {
  SpanLanes first;
  SpanLanes total;
  SpanLanes any;
  SpanLanes differ;
  SpanLanes unpaired;
  SpanLanes missing;
  SpanLanes lowest;
  SpanLanes highest;

  template <bool kHasFellows>
  [[gnu::always_inline]] void take(SpanLanes lanes, const mob_span_t* fellows) {
    total += lanes;
    any |= lanes;
    differ |= lanes ^ first;
    missing |= lanes - 1;  // sets the highest bit for 0 and for values below 0
    lowest = lower(lanes, lowest);
    const SpanLanes ends = lanes + swapped(lanes);
    highest = higher(ends, highest);
    if constexpr (kHasFellows) unpaired |= lanes ^ load_spans(fellows);
  }
};

template <bool kHasFellows>
void look_over_list(const mob_span_t* spans, size_t count, const mob_span_t* fellows,
                    SpanSummary* summary) {
  // The unused lanes of a short list repeat its first span, which affects only `total`.
  mob_span_t start[kSpansAtOnce];
  for (size_t i = 0; i < kSpansAtOnce; ++i) start[i] = spans[0];
  SpanLook look = {};
  look.first = load_spans(start);
  look.lowest = look.highest = look.first;
  look.highest += swapped(look.first);
  size_t i = 0;
  for (; i + kSpansAtOnce <= count; i += kSpansAtOnce) {
    look.take<kHasFellows>(load_spans(spans + i), kHasFellows ? fellows + i : nullptr);
  }
  if (i < count) {
    mob_span_t rest[kSpansAtOnce];
    mob_span_t others[kSpansAtOnce];
    for (size_t at = 0; at < kSpansAtOnce; ++at) {
      const size_t index = i + at < count ? i + at : 0;
      rest[at] = spans[index];
      if (kHasFellows) others[at] = fellows[index];
    }
    look.take<kHasFellows>(load_spans(rest), kHasFellows ? others : nullptr);
  }
  size_t twice = 0;
  if (i < count) twice = (kSpansAtOnce - (count - i)) * spans[0].bytes;
  *summary = {};
  auto lowest = static_cast<int64_t>(look.lowest[0]);
  auto highest = static_cast<int64_t>(look.highest[0]);
  for (size_t lane = 0; lane < kLanes; lane += 2) {
    summary->total += look.total[lane + 1];
    summary->addresses |= look.any[lane];
    summary->bytes |= look.any[lane + 1];
    summary->differ |= look.differ[lane + 1];
    summary->unpaired |= look.unpaired[lane + 1];
    summary->missing |= look.missing[lane] | look.missing[lane + 1];
    const auto low = static_cast<int64_t>(look.lowest[lane]);
    const auto high = static_cast<int64_t>(look.highest[lane]);
    if (low < lowest) lowest = low;
    if (high > highest) highest = high;
  }
  summary->total -= twice;
  summary->lowest = static_cast<uintptr_t>(lowest);
  summary->highest = static_cast<uintptr_t>(highest);
}

void look_over(const mob_span_t* spans, size_t count, const mob_span_t* fellows,
               SpanSummary* summary) {
  if (fellows != nullptr) {
    look_over_list<true>(spans, count, fellows, summary);
  } else {
    look_over_list<false>(spans, count, nullptr, summary);
  }
}

}  // namespace
}  // namespace mobius::transport

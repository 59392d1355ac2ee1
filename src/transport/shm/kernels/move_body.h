// SPDX-License-Identifier: BSD-3-Clause
// Part of kernels_body.h: loops that move bytes.
#pragma once

#include <cstdint>

#include "transport/shm/kernels/kernels.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace mobius::transport {
namespace {

// The widest register.
#if defined(__AVX512F__)
constexpr size_t kWidest = 64;
#elif defined(__AVX2__)
constexpr size_t kWidest = 32;
#else
constexpr size_t kWidest = 16;
#endif

// N bytes at any address, in one register.
template <size_t N>
struct PartOf {
  typedef char Type __attribute__((vector_size(N), aligned(1), may_alias));
};

// N bytes in as few registers as possible. Compilers split longer vectors too, but through the
// stack.
template <size_t N>
struct Block {
  static constexpr size_t kPartBytes = N < kWidest ? N : kWidest;
  static constexpr size_t kParts = N / kPartBytes;
  using Part = typename PartOf<kPartBytes>::Type;

  Part parts[kParts];

  [[gnu::always_inline]] explicit Block(const char* from) {
    for (size_t i = 0; i < kParts; ++i) parts[i] = reinterpret_cast<const Part*>(from)[i];
  }
  [[gnu::always_inline]] void store(char* to) const {
    for (size_t i = 0; i < kParts; ++i) reinterpret_cast<Part*>(to)[i] = parts[i];
  }
};

// Runs of exactly N bytes.
template <size_t N>
void rows_of(const Rows& rows) {
  const char* from = rows.from;
  char* to = rows.to;
  for (size_t i = 0; i < rows.count; ++i) {
    Block<N>(from).store(to);
    from += rows.from_stride;
    to += rows.to_stride;
  }
}

// Runs of N to N + M bytes: two overlapping moves.
template <size_t N, size_t M>
void rows_between(const Rows& rows, size_t bytes) {
  const size_t tail = bytes - M;
  const char* from = rows.from;
  char* to = rows.to;
  for (size_t i = 0; i < rows.count; ++i) {
    const Block<N> first(from);
    const Block<M> last(from + tail);
    first.store(to);
    last.store(to + tail);
    from += rows.from_stride;
    to += rows.to_stride;
  }
}

// Runs of 128 bytes and more: a first and a last block that overlap the whole cache lines between
// them, which are stored kLines at a time. With kAsk the loop prefetches the place of the next run
// while it writes this one: some processors' own prefetchers do not cross the gap.
template <bool kAsk, size_t kLines>
void rows_long(const Rows& rows, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* from = rows.from;
  char* to = rows.to;
  for (size_t left = rows.count; left != 0; --left) {
    // Nothing is prefetched after the last run: those lines may be in use by another process.
    const char* next = left == 1 ? to : to + rows.to_stride;
    const Block<kLine> head(from);
    const Block<kLine> tail(from + bytes - kLine);
    size_t at = -reinterpret_cast<uintptr_t>(to) & (kLine - 1);
    if (kAsk) __builtin_prefetch(next, 1);
    if (at != 0) head.store(to);
    for (; at + kLines * kLine <= bytes; at += kLines * kLine) {
      for (size_t i = 0; kAsk && i < kLines; ++i) __builtin_prefetch(next + at + i * kLine, 1);
      const Block<kLines * kLine> lines(from + at);
      lines.store(to + at);
    }
    for (; at + kLine <= bytes; at += kLine) {
      if (kAsk) __builtin_prefetch(next + at, 1);
      Block<kLine>(from + at).store(to + at);
    }
    if (kAsk) __builtin_prefetch(next + bytes - 1, 1);
    if (at != bytes) tail.store(to + bytes - kLine);
    from += rows.from_stride;
    to += rows.to_stride;
  }
}

void move_rows(const Rows& rows, size_t bytes) {
  switch (bytes) {
    case 1:
      return rows_of<1>(rows);
    case 2:
      return rows_of<2>(rows);
    case 4:
      return rows_of<4>(rows);
    case 8:
      return rows_of<8>(rows);
    case 16:
      return rows_of<16>(rows);
    case 32:
      return rows_of<32>(rows);
    case 64:
      return rows_of<64>(rows);
    default:
      break;
  }
  if (bytes < 4) return rows_between<2, 2>(rows, bytes);
  if (bytes < 8) return rows_between<4, 4>(rows, bytes);
  if (bytes < 16) return rows_between<8, 8>(rows, bytes);
  // A shorter second move crosses a cache line less often.
  if (bytes <= 24) return rows_between<16, 8>(rows, bytes);
  if (bytes < 32) return rows_between<16, 16>(rows, bytes);
  if (bytes <= 48) return rows_between<32, 16>(rows, bytes);
  if (bytes < 64) return rows_between<32, 32>(rows, bytes);
  if (bytes <= 96) return rows_between<64, 32>(rows, bytes);
  if (bytes < 128) return rows_between<64, 64>(rows, bytes);
  // Measured: prefetching gains a tenth on Sapphire Rapids. On Zen 5 it costs a tenth, and long
  // sequences of loads gain a fifth.
  if (!asks_for_next_run) {
    // A load after a store to the same offset of another page waits for the store, so keep such
    // loads few.
    constexpr ptrdiff_t kPage = 4096;
    if (rows.to_stride % kPage == 0) return rows_long<false, 8>(rows, bytes);
    return rows_long<false, 4>(rows, bytes);
  }
  // Runs that map to the same few sets of the nearest cache would evict each other.
  constexpr ptrdiff_t kSameSets = 2048;
  if (rows.to_stride % kSameSets == 0) return rows_long<false, 2>(rows, bytes);
  rows_long<true, 2>(rows, bytes);
}

#ifdef __x86_64__

// Writes one cache line past the caches. `to` starts a line.
[[gnu::always_inline]] inline void stream_line(char* to, const char* from) {
#ifdef __AVX512F__
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  const auto load = [from](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
  };
  const __m128i parts[4] = {load(0), load(1), load(2), load(3)};
  for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, parts[i]);
#endif
}

// Memory has several pages open, and one sequence of lines waits for one page at a time.
constexpr size_t kTogether = 4;

// Streams several sequences of lines in parallel, two lines of each in turn. Each of `to` starts a
// line.
void stream_together(char* const (&to)[kTogether], const char* const (&from)[kTogether],
                     size_t bytes) {
  for (size_t at = 0; at + 128 <= bytes; at += 128) {
    for (size_t i = 0; i < kTogether; ++i) {
      stream_line(to[i] + at, from[i] + at);
      stream_line(to[i] + at + 64, from[i] + at + 64);
    }
  }
}

// Streams the rest of one run, from the start of a line.
void stream_rest(char* to, const char* from, size_t bytes) {
  size_t at = 0;
  for (; at + 64 <= bytes; at += 64) stream_line(to + at, from + at);
  __builtin_memcpy(to + at, from + at, bytes - at);
}

// Stores the bytes in front of the first whole line and returns their number. Neither these bytes
// nor those behind the last whole line may overlap a streamed line: a line that is both stored and
// streamed goes to memory and back in between.
size_t store_head(char* to, const char* from) {
  const size_t head = -reinterpret_cast<uintptr_t>(to) & 63;
  __builtin_memcpy(to, from, head);
  return head;
}

// One long run, as four sequences that follow each other, page by page.
void stream_run(char* to, const char* from, size_t bytes) {
  constexpr size_t kPage = 4096;
  size_t at = store_head(to, from);
  for (; at + kTogether * kPage <= bytes; at += kTogether * kPage) {
    char* const tos[kTogether] = {to + at, to + at + kPage, to + at + 2 * kPage,
                                  to + at + 3 * kPage};
    const char* const sources[kTogether] = {from + at, from + at + kPage, from + at + 2 * kPage,
                                            from + at + 3 * kPage};
    stream_together(tos, sources, kPage);
  }
  stream_rest(to + at, from + at, bytes - at);
}

// Four short runs.
void stream_rows(const Rows& rows, size_t first, size_t bytes) {
  char* tos[kTogether];
  const char* sources[kTogether];
  size_t heads[kTogether];
  for (size_t i = 0; i < kTogether; ++i) {
    const auto row = static_cast<ptrdiff_t>(first + i);
    char* to = rows.to + row * rows.to_stride;
    const char* from = rows.from + row * rows.from_stride;
    heads[i] = store_head(to, from);
    tos[i] = to + heads[i];
    sources[i] = from + heads[i];
  }
  const size_t common = (bytes - 63) / 128 * 128;  // lines that all four have, wherever they start
  stream_together(tos, sources, common);
  for (size_t i = 0; i < kTogether; ++i) {
    stream_rest(tos[i] + common, sources[i] + common, bytes - heads[i] - common);
  }
}

void stream(const Rows& rows, size_t bytes) {
  constexpr size_t kLongRun = 32768;
  size_t row = 0;
  if (bytes < kLongRun) {
    for (; row + kTogether <= rows.count; row += kTogether) stream_rows(rows, row, bytes);
  }
  for (; row < rows.count; ++row) {
    const auto step = static_cast<ptrdiff_t>(row);
    stream_run(rows.to + step * rows.to_stride, rows.from + step * rows.from_stride, bytes);
  }
  // Streaming stores are not ordered like other stores. The fence pairs with the reader that learns
  // of the data from a later store.
  _mm_sfence();
}

#else

void stream(const Rows& rows, size_t bytes) {
  const char* from = rows.from;
  char* to = rows.to;
  for (size_t i = 0; i < rows.count; ++i) {
    __builtin_memcpy(to, from, bytes);
    from += rows.from_stride;
    to += rows.to_stride;
  }
}

#endif

}  // namespace
}  // namespace mobius::transport

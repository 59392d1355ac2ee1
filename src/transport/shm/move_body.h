// SPDX-License-Identifier: BSD-3-Clause
// Part of kernels_body.h: loops that move bytes.
#pragma once

#include <cstdint>

#include "transport/shm/kernels.h"
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

// N bytes in as few registers as it takes. Compilers split longer vectors too, by way of the stack.
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

// Runs of N to N + M bytes: two moves that overlap.
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

// Runs of 128 bytes and more: a first and a last block that overlap what is between them, which is
// stored in whole cache lines. With kAsk the place of the next run is asked for while this one is
// written: the processor's own prefetchers do not cross the gap.
template <bool kAsk>
void rows_long(const Rows& rows, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* from = rows.from;
  char* to = rows.to;
  for (size_t left = rows.count; left != 0; --left) {
    // Nothing is asked for beyond the last run: those lines may be another process's.
    const char* next = left == 1 ? to : to + rows.to_stride;
    const Block<kLine> head(from);
    const Block<kLine> tail(from + bytes - kLine);
    if (kAsk) __builtin_prefetch(next, 1);
    head.store(to);
    size_t at = kLine - (reinterpret_cast<uintptr_t>(to) & (kLine - 1));
    for (; at + 2 * kLine < bytes; at += 2 * kLine) {
      if (kAsk) {
        __builtin_prefetch(next + at, 1);
        __builtin_prefetch(next + at + kLine, 1);
      }
      const Block<kLine> first(from + at);
      const Block<kLine> second(from + at + kLine);
      first.store(to + at);
      second.store(to + at + kLine);
    }
    if (at + kLine < bytes) {
      if (kAsk) __builtin_prefetch(next + at, 1);
      Block<kLine>(from + at).store(to + at);
    }
    if (kAsk) __builtin_prefetch(next + bytes - 1, 1);
    tail.store(to + bytes - kLine);
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
  // The shorter the second move, the fewer of them cross a cache line.
  if (bytes <= 24) return rows_between<16, 8>(rows, bytes);
  if (bytes < 32) return rows_between<16, 16>(rows, bytes);
  if (bytes <= 48) return rows_between<32, 16>(rows, bytes);
  if (bytes < 64) return rows_between<32, 32>(rows, bytes);
  if (bytes <= 96) return rows_between<64, 32>(rows, bytes);
  if (bytes < 128) return rows_between<64, 64>(rows, bytes);
  // Runs that fall on the same few sets of the nearest cache would displace each other.
  constexpr ptrdiff_t kSameSets = 2048;
  if (rows.to_stride % kSameSets == 0) return rows_long<false>(rows, bytes);
  rows_long<true>(rows, bytes);
}

#ifdef __x86_64__

constexpr size_t kPage = 4096;
constexpr size_t kPagesAtOnce = 4;  // memory has several pages open; one stream waits for one

// Copies four pages side by side, two cache lines of each in turn. `to` starts a cache line.
void stream_pages(char* to, const char* from) {
  for (size_t line = 0; line < kPage; line += 128) {
    for (size_t page = 0; page < kPagesAtOnce; ++page) {
      char* target = to + page * kPage + line;
      const char* source = from + page * kPage + line;
#ifdef __AVX512F__
      const __m512i first = _mm512_loadu_si512(source);
      const __m512i second = _mm512_loadu_si512(source + 64);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(target), first);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(target + 64), second);
#else
      __m128i parts[8];
      for (size_t i = 0; i < 8; ++i) {
        parts[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + i);
      }
      for (size_t i = 0; i < 8; ++i) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(target) + i, parts[i]);
      }
#endif
    }
  }
}

void stream(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  constexpr size_t kAtOnce = kPagesAtOnce * kPage;
  const size_t head = -reinterpret_cast<uintptr_t>(target) & 63;
  if (bytes >= kAtOnce + head) {
    __builtin_memcpy(target, source, head);
    size_t done = head;
    for (; done + kAtOnce <= bytes; done += kAtOnce) stream_pages(target + done, source + done);
    // Streaming stores are not ordered as others are: pairs with whoever learns of the data by a
    // later store.
    _mm_sfence();
    target += done;
    source += done;
    bytes -= done;
  }
  __builtin_memcpy(target, source, bytes);
}

#else

void stream(void* to, const void* from, size_t bytes) { __builtin_memcpy(to, from, bytes); }

#endif

}  // namespace
}  // namespace mobius::transport

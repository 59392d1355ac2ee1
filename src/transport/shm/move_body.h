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

// N bytes at any address, in as few registers as the instruction set needs.
template <size_t N>
struct BytesOf {
  typedef char Type __attribute__((vector_size(N), aligned(1), may_alias));
};
template <size_t N>
using Bytes = typename BytesOf<N>::Type;

template <size_t N>
[[gnu::always_inline]] inline const Bytes<N>* bytes_at(const char* address) {
  return reinterpret_cast<const Bytes<N>*>(address);
}
template <size_t N>
[[gnu::always_inline]] inline Bytes<N>* bytes_at(char* address) {
  return reinterpret_cast<Bytes<N>*>(address);
}

// Runs of exactly N bytes.
template <size_t N>
void rows_of(const Rows& rows) {
  const char* from = rows.from;
  char* to = rows.to;
  for (size_t i = 0; i < rows.count; ++i) {
    *bytes_at<N>(to) = *bytes_at<N>(from);
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
    const Bytes<N> first = *bytes_at<N>(from);
    const Bytes<M> last = *bytes_at<M>(from + tail);
    *bytes_at<N>(to) = first;
    *bytes_at<M>(to + tail) = last;
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
    const Bytes<kLine> head = *bytes_at<kLine>(from);
    const Bytes<kLine> tail = *bytes_at<kLine>(from + bytes - kLine);
    if (kAsk) __builtin_prefetch(next, 1);
    *bytes_at<kLine>(to) = head;
    size_t at = kLine - (reinterpret_cast<uintptr_t>(to) & (kLine - 1));
    for (; at + 2 * kLine < bytes; at += 2 * kLine) {
      if (kAsk) {
        __builtin_prefetch(next + at, 1);
        __builtin_prefetch(next + at + kLine, 1);
      }
      const Bytes<kLine> first = *bytes_at<kLine>(from + at);
      const Bytes<kLine> second = *bytes_at<kLine>(from + at + kLine);
      *bytes_at<kLine>(to + at) = first;
      *bytes_at<kLine>(to + at + kLine) = second;
    }
    if (at + kLine < bytes) {
      if (kAsk) __builtin_prefetch(next + at, 1);
      *bytes_at<kLine>(to + at) = *bytes_at<kLine>(from + at);
    }
    if (kAsk) __builtin_prefetch(next + bytes - 1, 1);
    *bytes_at<kLine>(to + bytes - kLine) = tail;
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

// SPDX-License-Identifier: BSD-3-Clause

// Copies of several pieces, as Berkeley UPC has them.

#include <bupc_extensions.h>
#include <upc.h>

#include <algorithm>
#include <vector>

#include "front.h"

namespace mobius::upc {
namespace {

void move(mob_upc_ptr_t to, mob_upc_ptr_t from, size_t bytes) { upc_memcpy(to, from, bytes); }
void move(mob_upc_ptr_t to, const char* from, size_t bytes) { upc_memput(to, from, bytes); }
void move(char* to, mob_upc_ptr_t from, size_t bytes) { upc_memget(to, from, bytes); }

mob_upc_ptr_t behind(mob_upc_ptr_t p, size_t bytes) { return mob_upc_member(p, bytes); }
template <typename T>
T* behind(T* p, size_t bytes) {
  return p + bytes;
}

template <typename P>
struct Piece {
  P at;
  size_t bytes;
};

// Fills the pieces of one list with the bytes of the other.
template <typename To, typename From>
void fill(size_t to_count, To&& to, size_t from_count, From&& from, const char* call) {
  size_t i = 0;
  size_t k = 0;
  size_t done_to = 0;
  size_t done_from = 0;
  for (;;) {
    while (i < to_count && done_to == to(i).bytes) ++i, done_to = 0;
    while (k < from_count && done_from == from(k).bytes) ++k, done_from = 0;
    if (i == to_count || k == from_count) break;
    const size_t bytes = std::min(to(i).bytes - done_to, from(k).bytes - done_from);
    move(behind(to(i).at, done_to), behind(from(k).at, done_from), bytes);
    done_to += bytes;
    done_from += bytes;
  }
  if (i != to_count || k != from_count) {
    die(call, "the pieces of the destination have %s bytes than those of the source",
        i != to_count ? "more" : "fewer");
  }
}

auto pieces_of(const bupc_smemvec_t* list) {
  return [list](size_t i) { return Piece<mob_upc_ptr_t>{list[i].addr, list[i].len}; };
}
auto pieces_of(const bupc_pmemvec_t* list) {
  return [list](size_t i) { return Piece<char*>{static_cast<char*>(list[i].addr), list[i].len}; };
}
auto pieces_of(const mob_upc_ptr_t* list, size_t bytes) {
  return [list, bytes](size_t i) { return Piece<mob_upc_ptr_t>{list[i], bytes}; };
}
auto pieces_of(void* const* list, size_t bytes) {
  return [list, bytes](size_t i) { return Piece<char*>{static_cast<char*>(list[i]), bytes}; };
}
auto pieces_of(const void* const* list, size_t bytes) {
  return [list, bytes](size_t i) {
    return Piece<const char*>{static_cast<const char*>(list[i]), bytes};
  };
}
auto pieces_of(mob_upc_ptr_t first, size_t bytes, size_t stride) {
  return [=](size_t i) { return Piece<mob_upc_ptr_t>{behind(first, i * stride), bytes}; };
}
auto pieces_of(void* first, size_t bytes, size_t stride) {
  return [=](size_t i) { return Piece<char*>{static_cast<char*>(first) + i * stride, bytes}; };
}

// A box, from its outermost dimension on.
template <typename To, typename From>
void copy_box(To to, const size_t* to_strides, From from, const size_t* from_strides,
              const size_t* count, size_t levels) {
  if (levels == 0) {
    move(to, from, count[0]);
    return;
  }
  for (size_t i = 0; i < count[levels]; ++i) {
    copy_box(behind(to, i * to_strides[levels - 1]), to_strides,
             behind(from, i * from_strides[levels - 1]), from_strides, count, levels - 1);
  }
}

bool is_empty(const size_t* count, size_t levels) {
  return std::any_of(count, count + levels + 1, [](size_t each) { return each == 0; });
}

// The bytes between the first and the last of a box.
size_t extent_of(const std::vector<ptrdiff_t>& strides, const size_t* count) {
  size_t bytes = count[0];
  for (size_t i = 0; i < strides.size(); ++i) {
    bytes += (count[i + 1] - 1) * static_cast<size_t>(strides[i]);
  }
  return bytes;
}

// A box of a thread of another host travels as one transfer.
bool is_far_box(mob_upc_ptr_t p, size_t levels, const char* call) {
  check_pointer(p, call, "the pointer");
  return mob_upc_bases_[p.thread] == nullptr && levels < MOB_MAX_DIMENSIONS;
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

#define VLIST(kind, D, S)                                                                        \
  void bupc_mem##kind##_vlist(size_t dstcount, D const dstlist[], size_t srccount,               \
                              S const srclist[]) {                                               \
    fill(dstcount, pieces_of(dstlist), srccount, pieces_of(srclist), "bupc_mem" #kind "_vlist"); \
  }                                                                                              \
  upc_handle_t bupc_mem##kind##_vlist_async(size_t dstcount, D const dstlist[], size_t srccount, \
                                            S const srclist[]) {                                 \
    bupc_mem##kind##_vlist(dstcount, dstlist, srccount, srclist);                                \
    return UPC_COMPLETE_HANDLE;                                                                  \
  }
#define ILIST(kind, D, S)                                                                         \
  void bupc_mem##kind##_ilist(size_t dstcount, D const dstlist[], size_t dstlen, size_t srccount, \
                              S const srclist[], size_t srclen) {                                 \
    fill(dstcount, pieces_of(dstlist, dstlen), srccount, pieces_of(srclist, srclen),              \
         "bupc_mem" #kind "_ilist");                                                              \
  }                                                                                               \
  upc_handle_t bupc_mem##kind##_ilist_async(size_t dstcount, D const dstlist[], size_t dstlen,    \
                                            size_t srccount, S const srclist[], size_t srclen) {  \
    bupc_mem##kind##_ilist(dstcount, dstlist, dstlen, srccount, srclist, srclen);                 \
    return UPC_COMPLETE_HANDLE;                                                                   \
  }
#define FSTRIDED(kind, D, S)                                                                       \
  void bupc_mem##kind##_fstrided(D dst, size_t dstlen, size_t dststride, size_t dstcount, S src,   \
                                 size_t srclen, size_t srcstride, size_t srccount) {               \
    fill(dstcount, pieces_of(dst, dstlen, dststride), srccount, pieces_of(src, srclen, srcstride), \
         "bupc_mem" #kind "_fstrided");                                                            \
  }                                                                                                \
  upc_handle_t bupc_mem##kind##_fstrided_async(D dst, size_t dstlen, size_t dststride,             \
                                               size_t dstcount, S src, size_t srclen,              \
                                               size_t srcstride, size_t srccount) {                \
    bupc_mem##kind##_fstrided(dst, dstlen, dststride, dstcount, src, srclen, srcstride, srccount); \
    return UPC_COMPLETE_HANDLE;                                                                    \
  }
#define STRIDED_ASYNC(kind, D, S)                                                              \
  upc_handle_t bupc_mem##kind##_strided_async(D dst, const size_t dststrides[], S src,         \
                                              const size_t srcstrides[], const size_t count[], \
                                              size_t levels) {                                 \
    bupc_mem##kind##_strided(dst, dststrides, src, srcstrides, count, levels);                 \
    return UPC_COMPLETE_HANDLE;                                                                \
  }

extern "C" {

VLIST(cpy, bupc_smemvec_t, bupc_smemvec_t)
VLIST(put, bupc_smemvec_t, bupc_pmemvec_t)
VLIST(get, bupc_pmemvec_t, bupc_smemvec_t)
ILIST(cpy, mob_upc_ptr_t, mob_upc_ptr_t)
ILIST(put, mob_upc_ptr_t, const void*)
ILIST(get, void*, mob_upc_ptr_t)
FSTRIDED(cpy, mob_upc_ptr_t, mob_upc_ptr_t)
FSTRIDED(put, mob_upc_ptr_t, void*)
FSTRIDED(get, void*, mob_upc_ptr_t)

void bupc_memcpy_strided(mob_upc_ptr_t dst, const size_t dststrides[], mob_upc_ptr_t src,
                         const size_t srcstrides[], const size_t count[], size_t levels) {
  if (is_empty(count, levels)) return;
  copy_box(dst, dststrides, src, srcstrides, count, levels);
}

void bupc_memput_strided(mob_upc_ptr_t dst, const size_t dststrides[], const void* src,
                         const size_t srcstrides[], const size_t count[], size_t levels) {
  constexpr const char* kCall = "bupc_memput_strided";
  if (is_empty(count, levels)) return;
  if (!is_far_box(dst, levels, kCall)) {
    copy_box(dst, dststrides, static_cast<const char*>(src), srcstrides, count, levels);
    return;
  }
  const std::vector<ptrdiff_t> theirs(dststrides, dststrides + levels);
  const std::vector<ptrdiff_t> mine(srcstrides, srcstrides + levels);
  order_write(dst, extent_of(theirs, count), kCall);
  check(mob_put_strided(static_cast<mob_rank_t>(dst.thread), remote(dst), theirs.data(), src,
                        mine.data(), count[0], count + 1, static_cast<int>(levels)),
        kCall);
}

void bupc_memget_strided(void* dst, const size_t dststrides[], mob_upc_ptr_t src,
                         const size_t srcstrides[], const size_t count[], size_t levels) {
  constexpr const char* kCall = "bupc_memget_strided";
  if (is_empty(count, levels)) return;
  if (!is_far_box(src, levels, kCall)) {
    copy_box(static_cast<char*>(dst), dststrides, src, srcstrides, count, levels);
    return;
  }
  const std::vector<ptrdiff_t> mine(dststrides, dststrides + levels);
  const std::vector<ptrdiff_t> theirs(srcstrides, srcstrides + levels);
  order_read(src, extent_of(theirs, count), kCall);
  check(mob_get_strided(static_cast<mob_rank_t>(src.thread), remote(src), theirs.data(), dst,
                        mine.data(), count[0], count + 1, static_cast<int>(levels)),
        kCall);
}

STRIDED_ASYNC(cpy, mob_upc_ptr_t, mob_upc_ptr_t)
STRIDED_ASYNC(put, mob_upc_ptr_t, const void*)
STRIDED_ASYNC(get, void*, mob_upc_ptr_t)

}  // extern "C"

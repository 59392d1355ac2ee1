// SPDX-License-Identifier: BSD-3-Clause

// Boxes of bytes.

#include <cstring>

#include "transfers.h"

namespace mobius::armci {
namespace {

// A box as ARMCI describes it, without the levels that do not repeat. Only the first `levels`
// elements of the arrays are set: clearing all of them would cost as much as a small transfer.
struct Box {
  size_t bytes = 0;
  int levels = 0;
  bool is_empty = false;
  size_t counts[ARMCI_MAX_STRIDE_LEVEL];
  ptrdiff_t src_strides[ARMCI_MAX_STRIDE_LEVEL];
  ptrdiff_t dst_strides[ARMCI_MAX_STRIDE_LEVEL];
};

struct Side {
  void* first;
  const int* strides;
};

Box make_box(const int* src_strides, const int* dst_strides, const int* count, int levels,
             const char* function, int proc) {
  if (levels < 0 || levels > ARMCI_MAX_STRIDE_LEVEL) {
    die(function, "process %d: %d stride levels; it must be 0 to %d", proc, levels,
        ARMCI_MAX_STRIDE_LEVEL);
  }
  check_not_null(count, "the array of counts", function, proc);
  if (levels > 0) {
    check_not_null(src_strides, "the array of source strides", function, proc);
    check_not_null(dst_strides, "the array of destination strides", function, proc);
  }
  Box box;
  for (int level = 0; level <= levels; ++level) {
    if (count[level] < 0) {
      die(function, "process %d: count[%d] is %d; it must not be negative", proc, level,
          count[level]);
    }
    if (count[level] == 0) box.is_empty = true;
  }
  box.bytes = static_cast<size_t>(count[0]);
  for (int level = 0; level < levels; ++level) {
    if (count[level + 1] == 1) continue;
    box.counts[box.levels] = static_cast<size_t>(count[level + 1]);
    box.src_strides[box.levels] = src_strides[level];
    box.dst_strides[box.levels] = dst_strides[level];
    ++box.levels;
  }
  return box;
}

void carry(mob_kind_t kind, const Combination& combination, Side src, Side dst, const int* count,
           int levels, int proc, const Ending& ending, const char* function) {
  const Box box = make_box(src.strides, dst.strides, count, levels, function, proc);
  const bool gets = kind == MOB_GET;
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.shape = MOB_STRIDED;
  transfer.rank = proc;
  transfer.remote = gets ? src.first : dst.first;
  transfer.local = gets ? dst.first : src.first;
  transfer.bytes = box.bytes;
  transfer.dimensions = box.levels < MOB_MAX_DIMENSIONS ? box.levels : MOB_MAX_DIMENSIONS - 1;
  transfer.counts = box.counts;
  transfer.remote_strides = gets ? box.src_strides : box.dst_strides;
  transfer.local_strides = gets ? box.dst_strides : box.src_strides;
  if (kind == MOB_ACCUMULATE) set_combination(&transfer, combination, function);
  if (box.is_empty) {
    transfer.shape = MOB_CONTIGUOUS;
    transfer.bytes = 0;
    issue(transfer, ending, function);
    return;
  }
  // A loop handles the one level that ARMCI has more than Möbius.
  const int outer = transfer.dimensions;
  const size_t repetitions = box.levels > outer ? box.counts[outer] : 1;
  for (size_t i = 0; i < repetitions; ++i) {
    issue(transfer, ending, function);
    if (i + 1 == repetitions) break;
    transfer.remote = static_cast<char*>(transfer.remote) + transfer.remote_strides[outer];
    transfer.local = static_cast<char*>(transfer.local) + transfer.local_strides[outer];
  }
}

void put_flag(Side src, Side dst, const int* count, int levels, int* flag, int value, int proc,
              const char* function) {
  carry(MOB_PUT, {}, src, dst, count, levels, proc, Ending::blocking(), function);
  check(mob_fence(), function, proc);
  check(mob_put4(proc, flag, static_cast<uint32_t>(value)), function, proc);
}

// Calls `copy` for each segment of a box, in order.
template <typename Copy>
void for_each_segment(char* first, int levels, const int* stride, const int* count, Copy copy) {
  if (levels == 0) {
    copy(first);
    return;
  }
  for (int i = 0; i < count[levels]; ++i) {
    for_each_segment(first + ptrdiff_t{i} * stride[levels - 1], levels - 1, stride, count, copy);
  }
}

}  // namespace
}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int PARMCI_PutS(void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                int stride_levels, int proc) {
  carry(MOB_PUT, {}, {src, src_stride}, {dst, dst_stride}, count, stride_levels, proc,
        Ending::blocking(), "ARMCI_PutS");
  return 0;
}

int PARMCI_GetS(void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                int stride_levels, int proc) {
  carry(MOB_GET, {}, {src, src_stride}, {dst, dst_stride}, count, stride_levels, proc,
        Ending::blocking(), "ARMCI_GetS");
  return 0;
}

int PARMCI_AccS(int datatype, void* scale, void* src, int* src_stride, void* dst, int* dst_stride,
                int* count, int stride_levels, int proc) {
  carry(MOB_ACCUMULATE, {datatype, scale}, {src, src_stride}, {dst, dst_stride}, count,
        stride_levels, proc, Ending::blocking(), "ARMCI_AccS");
  return 0;
}

int PARMCI_NbPutS(void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                  int stride_levels, int proc, armci_hdl_t* handle) {
  carry(MOB_PUT, {}, {src, src_stride}, {dst, dst_stride}, count, stride_levels, proc,
        Ending::nonblocking(handle), "ARMCI_NbPutS");
  return 0;
}

int PARMCI_NbGetS(void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                  int stride_levels, int proc, armci_hdl_t* handle) {
  carry(MOB_GET, {}, {src, src_stride}, {dst, dst_stride}, count, stride_levels, proc,
        Ending::nonblocking(handle), "ARMCI_NbGetS");
  return 0;
}

int PARMCI_NbAccS(int datatype, void* scale, void* src, int* src_stride, void* dst, int* dst_stride,
                  int* count, int stride_levels, int proc, armci_hdl_t* handle) {
  carry(MOB_ACCUMULATE, {datatype, scale}, {src, src_stride}, {dst, dst_stride}, count,
        stride_levels, proc, Ending::nonblocking(handle), "ARMCI_NbAccS");
  return 0;
}

int PARMCI_PutS_flag(void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                     int stride_levels, int* flag, int value, int proc) {
  put_flag({src, src_stride}, {dst, dst_stride}, count, stride_levels, flag, value, proc,
           "ARMCI_PutS_flag");
  return 0;
}

int PARMCI_PutS_flag_dir(void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                         int stride_levels, int* flag, int value, int proc) {
  put_flag({src, src_stride}, {dst, dst_stride}, count, stride_levels, flag, value, proc,
           "ARMCI_PutS_flag_dir");
  return 0;
}

void armci_write_strided(void* ptr, int stride_levels, int* stride, int* count, char* buf) {
  make_box(stride, stride, count, stride_levels, "armci_write_strided", mob_rank());
  const auto bytes = static_cast<size_t>(count[0]);
  for_each_segment(static_cast<char*>(ptr), stride_levels, stride, count, [&](char* segment) {
    std::memcpy(buf, segment, bytes);
    buf += bytes;
  });
}

void armci_read_strided(void* ptr, int stride_levels, int* stride, int* count, char* buf) {
  make_box(stride, stride, count, stride_levels, "armci_read_strided", mob_rank());
  const auto bytes = static_cast<size_t>(count[0]);
  for_each_segment(static_cast<char*>(ptr), stride_levels, stride, count, [&](char* segment) {
    std::memcpy(segment, buf, bytes);
    buf += bytes;
  });
}

ARMCI_TWIN(PutS);
ARMCI_TWIN(GetS);
ARMCI_TWIN(AccS);
ARMCI_TWIN(NbPutS);
ARMCI_TWIN(NbGetS);
ARMCI_TWIN(NbAccS);
ARMCI_TWIN(PutS_flag);
ARMCI_TWIN(PutS_flag_dir);

}  // extern "C"

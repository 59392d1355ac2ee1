// SPDX-License-Identifier: BSD-3-Clause

// Put, get and accumulate of one contiguous range, single values, and atomic updates of words.

#include <bit>
#include <complex>
#include <cstring>

#include "transfers.h"

namespace mobius::armci {
namespace {

template <typename T>
const void* unless_one(const void* scale) {
  T value;
  std::memcpy(&value, scale, sizeof value);
  return value == T(1) ? nullptr : scale;
}

struct Elements {
  mob_type_t type;
  size_t bytes;  // of one; a power of two
  const void* scale;
};

Elements elements_of(const Combination& combination, int proc, const char* function) {
  const void* scale = combination.scale;
  check_not_null(scale, "the scale", function, proc);
  switch (combination.datatype) {
    case ARMCI_ACC_INT:
      return {MOB_INT32, 4, unless_one<int32_t>(scale)};
    case ARMCI_ACC_LNG:
      return {MOB_INT64, 8, unless_one<int64_t>(scale)};
    case ARMCI_ACC_FLT:
      return {MOB_FLOAT, 4, unless_one<float>(scale)};
    case ARMCI_ACC_DBL:
      return {MOB_DOUBLE, 8, unless_one<double>(scale)};
    case ARMCI_ACC_CPL:
      return {MOB_COMPLEX_FLOAT, 8, unless_one<std::complex<float>>(scale)};
    case ARMCI_ACC_DCP:
      return {MOB_COMPLEX_DOUBLE, 16, unless_one<std::complex<double>>(scale)};
    default:
      die(function, "process %d: %d is not an element type; see ARMCI_Acc_e", proc,
          combination.datatype);
  }
}

// Values of 1, 2, 4 and 8 bytes use the inlined calls.
template <typename T>
void put_one(const void* src, void* dst, int proc, mob_status_t (*put)(mob_rank_t, void*, T),
             const char* function) {
  T value;
  std::memcpy(&value, src, sizeof value);
  check(put(proc, dst, value), function, proc);
}

template <typename T>
void get_one(const void* src, void* dst, int proc, mob_status_t (*get)(mob_rank_t, const void*, T*),
             const char* function) {
  T value;
  check(get(proc, src, &value), function, proc);
  std::memcpy(dst, &value, sizeof value);
}

void put(void* src, void* dst, int bytes, int proc, const char* function) {
  check_not_negative(bytes, "the number of bytes", function, proc);
  switch (src != nullptr ? bytes : 0) {
    case 8:
      return put_one<uint64_t>(src, dst, proc, mob_put8, function);
    case 4:
      return put_one<uint32_t>(src, dst, proc, mob_put4, function);
    case 2:
      return put_one<uint16_t>(src, dst, proc, mob_put2, function);
    case 1:
      return put_one<uint8_t>(src, dst, proc, mob_put1, function);
    default:
      check(mob_put(proc, dst, src, static_cast<size_t>(bytes)), function, proc);
  }
}

void get(void* src, void* dst, int bytes, int proc, const char* function) {
  check_not_negative(bytes, "the number of bytes", function, proc);
  switch (dst != nullptr ? bytes : 0) {
    case 8:
      return get_one<uint64_t>(src, dst, proc, mob_get8, function);
    case 4:
      return get_one<uint32_t>(src, dst, proc, mob_get4, function);
    case 2:
      return get_one<uint16_t>(src, dst, proc, mob_get2, function);
    case 1:
      return get_one<uint8_t>(src, dst, proc, mob_get1, function);
    default:
      check(mob_get(proc, src, dst, static_cast<size_t>(bytes)), function, proc);
  }
}

[[gnu::noinline]] void accumulate_by_description(const Combination& combination, void* src,
                                                 void* dst, int bytes, int proc,
                                                 const Ending& ending, const char* function) {
  mob_transfer_t transfer{};
  transfer.kind = MOB_ACCUMULATE;
  transfer.shape = MOB_CONTIGUOUS;
  transfer.rank = proc;
  transfer.remote = dst;
  transfer.local = src;
  transfer.bytes = static_cast<size_t>(bytes);
  set_combination(&transfer, combination, function);
  issue(transfer, ending, function);
}

// A description is two hundred bytes that must be cleared, which takes as long as to combine a few
// elements.
void accumulate(const Combination& combination, void* src, void* dst, int bytes, int proc,
                const Ending& ending, const char* function) {
  check_not_negative(bytes, "the number of bytes", function, proc);
  const Elements what = elements_of(combination, proc, function);
  const auto length = static_cast<size_t>(bytes);
  if (ending.kind != Ending::kBlocking || (length & (what.bytes - 1)) != 0) {
    return accumulate_by_description(combination, src, dst, bytes, proc, ending, function);
  }
  const size_t count = length >> std::countr_zero(what.bytes);
  check(what.scale == nullptr ? mob_accumulate(proc, dst, src, count, what.type, MOB_SUM)
                              : mob_accumulate_scaled(proc, dst, src, count, what.type, what.scale),
        function, proc);
}

void move(mob_kind_t kind, void* remote, void* local, int bytes, int proc, armci_hdl_t* handle,
          const char* function) {
  check_not_negative(bytes, "the number of bytes", function, proc);
  const Ending ending = Ending::nonblocking(handle);
  const auto length = static_cast<size_t>(bytes);
  const bool puts = kind == MOB_PUT;
  if (ending.is_collected(proc)) {
    check(
        puts ? mob_put_nbi(proc, remote, local, length) : mob_get_nbi(proc, remote, local, length),
        function, proc);
    if (ending.kind == Ending::kHandle) handles().collected(handle, proc);
    return;
  }
  mob_handle_t operation = MOB_HANDLE_DONE;
  check(puts ? mob_put_nb(proc, remote, local, length, &operation)
             : mob_get_nb(proc, remote, local, length, &operation),
        function, proc);
  handles().started(handle, proc, operation);
}

// The call copies the value, so the operation is locally complete when it returns.
template <typename T>
int put_value(T value, void* dst, int proc, const char* function) {
  put(&value, dst, sizeof value, proc, function);
  return 0;
}

template <typename T>
int put_value_nb(T value, void* dst, int proc, armci_hdl_t* handle, const char* function) {
  put(&value, dst, sizeof value, proc, function);
  Ending::nonblocking(handle);
  return 0;
}

template <typename T>
T get_value(void* src, int proc, const char* function) {
  T value;
  get(src, &value, sizeof value, proc, function);
  return value;
}

}  // namespace

void set_combination(mob_transfer_t* transfer, const Combination& combination,
                     const char* function) {
  const Elements what = elements_of(combination, transfer->rank, function);
  transfer->op = MOB_SUM;
  transfer->type = what.type;
  transfer->scale = what.scale;
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

int PARMCI_Put(void* src, void* dst, int bytes, int proc) {
  put(src, dst, bytes, proc, "ARMCI_Put");
  return 0;
}

int PARMCI_Get(void* src, void* dst, int bytes, int proc) {
  get(src, dst, bytes, proc, "ARMCI_Get");
  return 0;
}

int PARMCI_Acc(int datatype, void* scale, void* src, void* dst, int bytes, int proc) {
  accumulate({datatype, scale}, src, dst, bytes, proc, Ending::blocking(), "ARMCI_Acc");
  return 0;
}

int PARMCI_NbPut(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle) {
  move(MOB_PUT, dst, src, bytes, proc, handle, "ARMCI_NbPut");
  return 0;
}

int PARMCI_NbGet(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle) {
  move(MOB_GET, src, dst, bytes, proc, handle, "ARMCI_NbGet");
  return 0;
}

int PARMCI_NbAcc(int datatype, void* scale, void* src, void* dst, int bytes, int proc,
                 armci_hdl_t* handle) {
  accumulate({datatype, scale}, src, dst, bytes, proc, Ending::nonblocking(handle), "ARMCI_NbAcc");
  return 0;
}

int PARMCI_Put_flag(void* src, void* dst, int bytes, int* flag, int value, int proc) {
  put(src, dst, bytes, proc, "ARMCI_Put_flag");
  check(mob_fence(), "ARMCI_Put_flag", proc);
  return put_value(value, flag, proc, "ARMCI_Put_flag");
}

int PARMCI_PutValueInt(int src, void* dst, int proc) {
  return put_value(src, dst, proc, "ARMCI_PutValueInt");
}
int PARMCI_PutValueLong(long src, void* dst, int proc) {
  return put_value(src, dst, proc, "ARMCI_PutValueLong");
}
int PARMCI_PutValueFloat(float src, void* dst, int proc) {
  return put_value(src, dst, proc, "ARMCI_PutValueFloat");
}
int PARMCI_PutValueDouble(double src, void* dst, int proc) {
  return put_value(src, dst, proc, "ARMCI_PutValueDouble");
}
int PARMCI_NbPutValueInt(int src, void* dst, int proc, armci_hdl_t* handle) {
  return put_value_nb(src, dst, proc, handle, "ARMCI_NbPutValueInt");
}
int PARMCI_NbPutValueLong(long src, void* dst, int proc, armci_hdl_t* handle) {
  return put_value_nb(src, dst, proc, handle, "ARMCI_NbPutValueLong");
}
int PARMCI_NbPutValueFloat(float src, void* dst, int proc, armci_hdl_t* handle) {
  return put_value_nb(src, dst, proc, handle, "ARMCI_NbPutValueFloat");
}
int PARMCI_NbPutValueDouble(double src, void* dst, int proc, armci_hdl_t* handle) {
  return put_value_nb(src, dst, proc, handle, "ARMCI_NbPutValueDouble");
}
int PARMCI_GetValueInt(void* src, int proc) {
  return get_value<int>(src, proc, "ARMCI_GetValueInt");
}
long PARMCI_GetValueLong(void* src, int proc) {
  return get_value<long>(src, proc, "ARMCI_GetValueLong");
}
float PARMCI_GetValueFloat(void* src, int proc) {
  return get_value<float>(src, proc, "ARMCI_GetValueFloat");
}
double PARMCI_GetValueDouble(void* src, int proc) {
  return get_value<double>(src, proc, "ARMCI_GetValueDouble");
}

int PARMCI_Rmw(int op, void* ploc, void* prem, int value, int proc) {
  constexpr const char* kName = "ARMCI_Rmw";
  check_not_null(ploc, "the place for the result", kName, proc);
  uint32_t operand4 = 0;
  uint64_t operand8 = 0;
  uint32_t old4 = 0;
  uint64_t old8 = 0;
  switch (op) {
    case ARMCI_FETCH_AND_ADD:
      check(mob_fetch_add4(proc, prem, static_cast<uint32_t>(value), &old4), kName, proc);
      std::memcpy(ploc, &old4, sizeof old4);
      break;
    case ARMCI_SWAP:
      std::memcpy(&operand4, ploc, sizeof operand4);
      check(mob_swap4(proc, prem, operand4, &old4), kName, proc);
      std::memcpy(ploc, &old4, sizeof old4);
      break;
    case ARMCI_FETCH_AND_ADD_LONG:
      check(mob_fetch_add8(proc, prem, static_cast<uint64_t>(int64_t{value}), &old8), kName, proc);
      std::memcpy(ploc, &old8, sizeof old8);
      break;
    case ARMCI_SWAP_LONG:
      std::memcpy(&operand8, ploc, sizeof operand8);
      check(mob_swap8(proc, prem, operand8, &old8), kName, proc);
      std::memcpy(ploc, &old8, sizeof old8);
      break;
    default:
      die(kName, "process %d: %d is not an operation; see ARMCI_Rmw_e", proc, op);
  }
  return 0;
}

void PARMCI_Copy(void* src, void* dst, int bytes) {
  check_not_negative(bytes, "the number of bytes", "ARMCI_Copy", mob_rank());
  std::memmove(dst, src, static_cast<size_t>(bytes));
}

ARMCI_TWIN(Put);
ARMCI_TWIN(Get);
ARMCI_TWIN(Acc);
ARMCI_TWIN(NbPut);
ARMCI_TWIN(NbGet);
ARMCI_TWIN(NbAcc);
ARMCI_TWIN(Put_flag);
ARMCI_TWIN(PutValueInt);
ARMCI_TWIN(PutValueLong);
ARMCI_TWIN(PutValueFloat);
ARMCI_TWIN(PutValueDouble);
ARMCI_TWIN(NbPutValueInt);
ARMCI_TWIN(NbPutValueLong);
ARMCI_TWIN(NbPutValueFloat);
ARMCI_TWIN(NbPutValueDouble);
ARMCI_TWIN(GetValueInt);
ARMCI_TWIN(GetValueLong);
ARMCI_TWIN(GetValueFloat);
ARMCI_TWIN(GetValueDouble);
ARMCI_TWIN(Rmw);
ARMCI_TWIN(Copy);

}  // extern "C"

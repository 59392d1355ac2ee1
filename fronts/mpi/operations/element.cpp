// SPDX-License-Identifier: BSD-3-Clause
#include "operations/element.h"

#include <map>
#include <mutex>
#include <vector>

#include "binding/real.h"

namespace mobius::mpi {
namespace {

using Kind = ElementKind;

struct Pair {
  uint16_t first_bytes;
  uint16_t second_offset;
  uint16_t second_bytes;
};

template <typename First, typename Second>
constexpr Pair pair_of() {
  struct Both {
    First first;
    Second second;
  };
  return {sizeof(First), offsetof(Both, second), sizeof(Second)};
}

bool integer_of(size_t bytes, bool is_signed, mob_type_t* type) {
  switch (bytes) {
    case 1:
      *type = is_signed ? MOB_INT8 : MOB_UINT8;
      return true;
    case 2:
      *type = is_signed ? MOB_INT16 : MOB_UINT16;
      return true;
    case 4:
      *type = is_signed ? MOB_INT32 : MOB_UINT32;
      return true;
    case 8:
      *type = is_signed ? MOB_INT64 : MOB_UINT64;
      return true;
    default:
      return false;
  }
}

bool mobius_type(Kind kind, size_t bytes, bool is_signed, mob_type_t* type) {
  switch (kind) {
    case Kind::kReal:
      *type = bytes == 4 ? MOB_FLOAT : MOB_DOUBLE;
      return bytes == 4 || bytes == 8;
    case Kind::kComplex:
      *type = bytes == 8 ? MOB_COMPLEX_FLOAT : MOB_COMPLEX_DOUBLE;
      return bytes == 8 || bytes == 16;
    case Kind::kPair:
      return false;
    default:
      return integer_of(bytes, is_signed, type);
  }
}

// A predefined type as the standard has it.
struct Predefined {
  MPI_Datatype handle;
  Kind kind;
  bool is_signed;
  Pair pair;
};

const std::vector<Predefined>& predefined() {
  static const std::vector<Predefined> all = {
      {MPI_CHAR, Kind::kInteger, true, {}},
      {MPI_SIGNED_CHAR, Kind::kInteger, true, {}},
      {MPI_UNSIGNED_CHAR, Kind::kInteger, false, {}},
      {MPI_SHORT, Kind::kInteger, true, {}},
      {MPI_UNSIGNED_SHORT, Kind::kInteger, false, {}},
      {MPI_INT, Kind::kInteger, true, {}},
      {MPI_UNSIGNED, Kind::kInteger, false, {}},
      {MPI_LONG, Kind::kInteger, true, {}},
      {MPI_UNSIGNED_LONG, Kind::kInteger, false, {}},
      {MPI_LONG_LONG, Kind::kInteger, true, {}},
      {MPI_UNSIGNED_LONG_LONG, Kind::kInteger, false, {}},
      {MPI_INT8_T, Kind::kInteger, true, {}},
      {MPI_INT16_T, Kind::kInteger, true, {}},
      {MPI_INT32_T, Kind::kInteger, true, {}},
      {MPI_INT64_T, Kind::kInteger, true, {}},
      {MPI_UINT8_T, Kind::kInteger, false, {}},
      {MPI_UINT16_T, Kind::kInteger, false, {}},
      {MPI_UINT32_T, Kind::kInteger, false, {}},
      {MPI_UINT64_T, Kind::kInteger, false, {}},
      {MPI_AINT, Kind::kInteger, true, {}},
      {MPI_OFFSET, Kind::kInteger, true, {}},
      {MPI_COUNT, Kind::kInteger, true, {}},
      {MPI_INTEGER, Kind::kInteger, true, {}},
#ifdef MPI_INTEGER1
      {MPI_INTEGER1, Kind::kInteger, true, {}},
#endif
#ifdef MPI_INTEGER2
      {MPI_INTEGER2, Kind::kInteger, true, {}},
#endif
#ifdef MPI_INTEGER4
      {MPI_INTEGER4, Kind::kInteger, true, {}},
#endif
#ifdef MPI_INTEGER8
      {MPI_INTEGER8, Kind::kInteger, true, {}},
#endif
#ifdef MPI_INTEGER16
      {MPI_INTEGER16, Kind::kInteger, true, {}},
#endif
      {MPI_FLOAT, Kind::kReal, true, {}},
      {MPI_DOUBLE, Kind::kReal, true, {}},
      {MPI_LONG_DOUBLE, Kind::kReal, true, {}},
      {MPI_REAL, Kind::kReal, true, {}},
      {MPI_DOUBLE_PRECISION, Kind::kReal, true, {}},
#ifdef MPI_REAL4
      {MPI_REAL4, Kind::kReal, true, {}},
#endif
#ifdef MPI_REAL8
      {MPI_REAL8, Kind::kReal, true, {}},
#endif
#ifdef MPI_REAL16
      {MPI_REAL16, Kind::kReal, true, {}},
#endif
#ifdef MPI_REAL2
      {MPI_REAL2, Kind::kReal, true, {}},
#endif
      {MPI_COMPLEX, Kind::kComplex, true, {}},
      {MPI_DOUBLE_COMPLEX, Kind::kComplex, true, {}},
      {MPI_C_FLOAT_COMPLEX, Kind::kComplex, true, {}},
      {MPI_C_DOUBLE_COMPLEX, Kind::kComplex, true, {}},
      {MPI_C_LONG_DOUBLE_COMPLEX, Kind::kComplex, true, {}},
      {MPI_CXX_FLOAT_COMPLEX, Kind::kComplex, true, {}},
      {MPI_CXX_DOUBLE_COMPLEX, Kind::kComplex, true, {}},
      {MPI_CXX_LONG_DOUBLE_COMPLEX, Kind::kComplex, true, {}},
#ifdef MPI_COMPLEX8
      {MPI_COMPLEX8, Kind::kComplex, true, {}},
#endif
#ifdef MPI_COMPLEX16
      {MPI_COMPLEX16, Kind::kComplex, true, {}},
#endif
#ifdef MPI_COMPLEX32
      {MPI_COMPLEX32, Kind::kComplex, true, {}},
#endif
#ifdef MPI_COMPLEX4
      {MPI_COMPLEX4, Kind::kComplex, true, {}},
#endif
      {MPI_C_BOOL, Kind::kLogical, false, {}},
      {MPI_CXX_BOOL, Kind::kLogical, false, {}},
      {MPI_LOGICAL, Kind::kLogical, true, {}},
#ifdef MPI_LOGICAL1
      {MPI_LOGICAL1, Kind::kLogical, true, {}},
#endif
#ifdef MPI_LOGICAL2
      {MPI_LOGICAL2, Kind::kLogical, true, {}},
#endif
#ifdef MPI_LOGICAL4
      {MPI_LOGICAL4, Kind::kLogical, true, {}},
#endif
#ifdef MPI_LOGICAL8
      {MPI_LOGICAL8, Kind::kLogical, true, {}},
#endif
#ifdef MPI_LOGICAL16
      {MPI_LOGICAL16, Kind::kLogical, true, {}},
#endif
      {MPI_BYTE, Kind::kByte, false, {}},
      {MPI_PACKED, Kind::kOther, false, {}},
      {MPI_CHARACTER, Kind::kOther, false, {}},
      {MPI_WCHAR, Kind::kOther, true, {}},
      {MPI_FLOAT_INT, Kind::kPair, false, pair_of<float, int>()},
      {MPI_DOUBLE_INT, Kind::kPair, false, pair_of<double, int>()},
      {MPI_LONG_INT, Kind::kPair, false, pair_of<long, int>()},
      {MPI_2INT, Kind::kPair, false, pair_of<int, int>()},
      {MPI_SHORT_INT, Kind::kPair, false, pair_of<short, int>()},
      {MPI_LONG_DOUBLE_INT, Kind::kPair, false, pair_of<long double, int>()},
      {MPI_2INTEGER, Kind::kPair, false, pair_of<int, int>()},
      {MPI_2REAL, Kind::kPair, false, pair_of<float, float>()},
      {MPI_2DOUBLE_PRECISION, Kind::kPair, false, pair_of<double, double>()},
  };
  return all;
}

struct OpName {
  MPI_Op handle;
  mob_op_t op;
};

// Open MPI's handles are addresses that are known once it is loaded.
bool translate(MPI_Op op, mob_op_t* translated) {
  static const OpName names[] = {
      {MPI_SUM, MOB_SUM},   {MPI_REPLACE, MOB_REPLACE}, {MPI_NO_OP, MOB_NO_OP},
      {MPI_MIN, MOB_MIN},   {MPI_MAX, MOB_MAX},         {MPI_PROD, MOB_PROD},
      {MPI_LAND, MOB_LAND}, {MPI_LOR, MOB_LOR},         {MPI_LXOR, MOB_LXOR},
      {MPI_BAND, MOB_BAND}, {MPI_BOR, MOB_BOR},         {MPI_BXOR, MOB_BXOR}};
  for (const OpName& name : names) {
    if (name.handle != op) continue;
    *translated = name.op;
    return true;
  }
  return false;
}

bool is_allowed(mob_op_t op, Kind kind) {
  switch (op) {
    case MOB_SUM:
    case MOB_PROD:
      return kind == Kind::kInteger || kind == Kind::kReal || kind == Kind::kComplex;
    case MOB_MIN:
    case MOB_MAX:
      return kind == Kind::kInteger || kind == Kind::kReal;
    case MOB_LAND:
    case MOB_LOR:
    case MOB_LXOR:
      return kind == Kind::kInteger || kind == Kind::kLogical;
    case MOB_BAND:
    case MOB_BOR:
    case MOB_BXOR:
      return kind == Kind::kInteger || kind == Kind::kByte;
    default:
      return true;
  }
}

constexpr mob_op_t kOps[] = {MOB_SUM,  MOB_REPLACE, MOB_NO_OP, MOB_MIN,  MOB_MAX, MOB_PROD,
                             MOB_LAND, MOB_LOR,     MOB_LXOR,  MOB_BAND, MOB_BOR, MOB_BXOR};

Element* describe(const Predefined& type) {
  int bytes = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  if (real::Type_size(type.handle, &bytes) != MPI_SUCCESS || bytes <= 0 ||
      real::Type_get_extent(type.handle, &lower, &extent) != MPI_SUCCESS) {
    return nullptr;
  }
  auto* element = new Element;  // for as long as the process runs, as predefined types do
  element->handle = type.handle;
  element->kind = type.kind;
  element->bytes = static_cast<uint16_t>(bytes);
  element->extent = static_cast<uint16_t>(extent);
  element->is_known =
      mobius_type(type.kind, static_cast<size_t>(bytes), type.is_signed, &element->type);
  if (element->is_known) {
    element->alignment = static_cast<uint16_t>(type.kind == Kind::kComplex ? bytes / 2 : bytes);
    for (const mob_op_t op : kOps) {
      if (is_allowed(op, type.kind) && mob_op_is_defined(op, element->type) != 0) {
        element->ops |= 1u << op;
      }
    }
  }
  element->first_bytes = type.pair.first_bytes;
  element->second_offset = type.pair.second_offset;
  element->second_bytes = type.pair.second_bytes;
  return element;
}

}  // namespace

const Element* element_of(MPI_Datatype type) {
  static std::mutex mutex;  // guards `known`
  static std::map<uintptr_t, const Element*> known;
  const std::lock_guard lock(mutex);
  const uintptr_t number = number_of(type);
  if (const auto found = known.find(number); found != known.end()) return found->second;
  for (const Predefined& each : predefined()) {
    if (number_of(each.handle) != number) continue;
    return known[number] = describe(each);
  }
  return nullptr;
}

const Element* element_like(ElementKind kind, size_t bytes) {
  const MPI_Datatype candidates[] = {MPI_FLOAT,
                                     MPI_DOUBLE,
                                     MPI_LONG_DOUBLE,
                                     MPI_C_FLOAT_COMPLEX,
                                     MPI_C_DOUBLE_COMPLEX,
                                     MPI_C_LONG_DOUBLE_COMPLEX,
                                     MPI_SIGNED_CHAR,
                                     MPI_SHORT,
                                     MPI_INT,
                                     MPI_LONG};
  for (const MPI_Datatype candidate : candidates) {
    const Element* element = element_of(candidate);
    if (element != nullptr && element->kind == kind && element->bytes == bytes) return element;
  }
  return nullptr;
}

OpKind op_kind(MPI_Op op, const Element& element, mob_op_t* translated) {
  if (translate(op, translated)) {
    if (element.can(*translated)) return OpKind::kMobius;
    return is_allowed(*translated, element.kind) ? OpKind::kLocked : OpKind::kInvalid;
  }
  const bool is_of_pairs = op == MPI_MINLOC || op == MPI_MAXLOC;
  return is_of_pairs && element.kind == ElementKind::kPair ? OpKind::kLocked : OpKind::kInvalid;
}

}  // namespace mobius::mpi

// SPDX-License-Identifier: BSD-3-Clause

// Atomic domains. Words are updated by the atomic calls of Möbius: by one call where it has the
// operation, else by compare-and-swap. Pointers to shared memory have 16 bytes, and take a mutex of
// the thread that has them.

#include <upc.h>
#include <upc_atomic.h>

#include <cstring>
#include <type_traits>

#include "collectives.h"
#include "front.h"

namespace mobius::upc {
namespace {

// Each thread has a copy, at the same offset.
struct Domain {
  uint64_t state;
  upc_op_t ops;
  upc_op_t quick_ops;  // those that are one atomic instruction on an integer of 8 bytes
  int64_t type;
};
constexpr uint64_t kLive = 0x6d6f6275706361d0;

constexpr upc_op_t kAccess = UPC_GET | UPC_SET | UPC_CSWAP;
constexpr upc_op_t kNumeric =
    kAccess | UPC_ADD | UPC_SUB | UPC_MULT | UPC_INC | UPC_DEC | UPC_MIN | UPC_MAX;
constexpr upc_op_t kInteger = kNumeric | UPC_AND | UPC_OR | UPC_XOR;

// The operations that a type has; 0: no type of a domain.
upc_op_t operations(upc_type_t type) {
  switch (type) {
    case UPC_INT:
    case UPC_UINT:
    case UPC_LONG:
    case UPC_ULONG:
    case UPC_INT32:
    case UPC_UINT32:
    case UPC_INT64:
    case UPC_UINT64:
      return kInteger;
    case UPC_FLOAT:
    case UPC_DOUBLE:
      return kNumeric;
    case UPC_PTS:
      return kAccess;
    default:
      return 0;
  }
}

// What a call does, for any type.
struct Update {
  mob_rank_t rank;
  char* at;
  upc_op_t op;
  const void* operand1;
  const void* operand2;
  void* fetched;
  const char* call;
};

uint64_t swap_word(const Update& u, uint64_t value, uint64_t*) {
  uint64_t old = 0;
  check(mob_swap8(u.rank, u.at, value, &old), u.call);
  return old;
}
uint32_t swap_word(const Update& u, uint32_t value, uint32_t*) {
  uint32_t old = 0;
  check(mob_swap4(u.rank, u.at, value, &old), u.call);
  return old;
}
uint64_t read_word(const Update& u, uint64_t*) {
  uint64_t value = 0;
  check(mob_get8(u.rank, u.at, &value), u.call);
  return value;
}
uint32_t read_word(const Update& u, uint32_t*) {
  uint32_t value = 0;
  check(mob_get4(u.rank, u.at, &value), u.call);
  return value;
}
uint64_t compare_swap(const Update& u, uint64_t expected, uint64_t desired) {
  uint64_t old = 0;
  check(mob_compare_swap8(u.rank, u.at, expected, desired, &old), u.call);
  return old;
}
uint32_t compare_swap(const Update& u, uint32_t expected, uint32_t desired) {
  uint32_t old = 0;
  check(mob_compare_swap4(u.rank, u.at, expected, desired, &old), u.call);
  return old;
}

#define DEFINE_FETCH(name)                                         \
  uint64_t name##_word(const Update& u, uint64_t value) {          \
    uint64_t old = 0;                                              \
    check(mob_fetch_##name##8(u.rank, u.at, value, &old), u.call); \
    return old;                                                    \
  }                                                                \
  uint32_t name##_word(const Update& u, uint32_t value) {          \
    uint32_t old = 0;                                              \
    check(mob_fetch_##name##4(u.rank, u.at, value, &old), u.call); \
    return old;                                                    \
  }
DEFINE_FETCH(add)
DEFINE_FETCH(and)
DEFINE_FETCH(or)
DEFINE_FETCH(xor)
#undef DEFINE_FETCH

template <typename To, typename From>
To as(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T>
T updated(T before, T operand, const Update& u) {
  switch (u.op) {
    case UPC_SUB:
      return static_cast<T>(before - operand);
    case UPC_INC:
      return static_cast<T>(before + T{1});
    case UPC_DEC:
      return static_cast<T>(before - T{1});
    default:
      static_cast<void>(combine(u.op, &before, operand));
      return before;
  }
}

template <typename T>
void update_number(const Update& u) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  T operand = {};
  if (u.operand1 != nullptr) std::memcpy(&operand, u.operand1, sizeof operand);
  const auto give = [&](Word before) {
    if (u.fetched != nullptr) std::memcpy(u.fetched, &before, sizeof before);
  };
  if (u.op == UPC_GET) return give(read_word(u, static_cast<Word*>(nullptr)));
  if (u.op == UPC_SET) return give(swap_word(u, as<Word>(operand), nullptr));
  if constexpr (std::is_integral_v<T>) {
    const auto word = static_cast<Word>(operand);
    switch (u.op) {
      case UPC_ADD:
        return give(add_word(u, word));
      case UPC_SUB:
        return give(add_word(u, static_cast<Word>(Word{0} - word)));
      case UPC_INC:
        return give(add_word(u, Word{1}));
      case UPC_DEC:
        return give(add_word(u, static_cast<Word>(~Word{0})));
      case UPC_AND:
        return give(and_word(u, word));
      case UPC_OR:
        return give(or_word(u, word));
      case UPC_XOR:
        return give(xor_word(u, word));
      default:
        break;
    }
  }
  Word before = read_word(u, static_cast<Word*>(nullptr));
  for (;;) {
    T next;
    if (u.op == UPC_CSWAP) {
      // As values: 0.0 and -0.0 are equal.
      if (!(as<T>(before) == operand)) return give(before);
      std::memcpy(&next, u.operand2, sizeof next);
    } else {
      next = updated(as<T>(before), operand, u);
    }
    const Word found = compare_swap(u, before, as<Word>(next));
    if (found == before) return give(before);
    before = found;
  }
}

void update_pointer(const Update& u) {
  check(mob_mutex_lock(thread_mutexes(), kPointerMutex, u.rank, nullptr), u.call);
  mob_upc_ptr_t before;
  check(mob_get(u.rank, u.at, &before, sizeof before), u.call);
  const void* next = u.op == UPC_SET ? u.operand1 : nullptr;
  if (u.op == UPC_CSWAP) {
    mob_upc_ptr_t expected;
    std::memcpy(&expected, u.operand1, sizeof expected);
    if (mob_upc_equal(before, expected)) next = u.operand2;
  }
  if (next != nullptr) check(mob_put(u.rank, u.at, next, sizeof before), u.call);
  check(mob_flush(u.rank), u.call);
  check(mob_mutex_unlock(thread_mutexes(), kPointerMutex, u.rank), u.call);
  if (u.fetched != nullptr) std::memcpy(u.fetched, &before, sizeof before);
}

// The usual case without a detour: an integer of 8 bytes of a thread of this host, and an operation
// that is one instruction. False if it is another case, or if something is wrong.
bool update_quickly(mob_upc_ptr_t domain, upc_op_t op, mob_upc_ptr_t target, const void* operand1,
                    const void* operand2, void* fetched) {
  if (domain.thread != 0 || domain.offset < kGuardBytes || domain.offset >= area_bytes())
    return false;
  const auto* const found = static_cast<const Domain*>(mob_upc_local(domain.offset));
  if (found->state != kLive || (op & found->quick_ops) == 0 || operand1 == nullptr ||
      operand2 != nullptr || target.offset < kGuardBytes ||
      target.thread >= static_cast<uint32_t>(threads()) ||
      mob_upc_bases_[target.thread] == nullptr) {
    return false;
  }
  uint64_t value;
  std::memcpy(&value, operand1, sizeof value);
  const auto rank = static_cast<mob_rank_t>(target.thread);
  uint64_t before = 0;
  mob_status_t status;
  switch (op) {
    case UPC_ADD:
      status = mob_fetch_add8(rank, remote(target), value, &before);
      break;
    case UPC_SUB:
      status = mob_fetch_add8(rank, remote(target), uint64_t{0} - value, &before);
      break;
    case UPC_SET:
      status = mob_swap8(rank, remote(target), value, &before);
      break;
    default:  // several operations at once
      return false;
  }
  if (status != MOB_OK) return false;
  if (fetched != nullptr) std::memcpy(fetched, &before, sizeof before);
  return true;
}

void check_operands(const Update& u) {
  const bool is_compare = u.op == UPC_CSWAP;
  const bool needs_operand = (u.op & (UPC_GET | UPC_INC | UPC_DEC)) == 0;
  if (needs_operand != (u.operand1 != nullptr)) {
    die(u.call, "op 0x%lx %s operand1", u.op, needs_operand ? "needs" : "takes no");
  }
  if (is_compare != (u.operand2 != nullptr)) {
    die(u.call, "op 0x%lx %s operand2", u.op, is_compare ? "needs" : "takes no");
  }
  if (u.op == UPC_GET && u.fetched == nullptr) die(u.call, "UPC_GET needs fetch_ptr");
}

const Domain& find(mob_upc_ptr_t domain, const char* call) {
  check_pointer(domain, call, "domain");
  const auto* const found = static_cast<const Domain*>(mob_upc_local(domain.offset));
  if (domain.offset >= area_bytes() || domain.thread != 0 || found->state != kLive) {
    die(call, "domain is none of upc_all_atomicdomain_alloc(), or was freed");
  }
  return *found;
}

void update(const Domain& domain, const Update& u) {
  if ((u.op & (u.op - 1)) != 0 || (u.op & domain.ops) == 0) {
    die(u.call, "op 0x%lx is not one operation of the domain, which has 0x%lx", u.op, domain.ops);
  }
  check_operands(u);
  switch (domain.type) {
    case UPC_INT:
    case UPC_INT32:
      return update_number<int32_t>(u);
    case UPC_UINT:
    case UPC_UINT32:
      return update_number<uint32_t>(u);
    case UPC_LONG:
    case UPC_INT64:
      return update_number<int64_t>(u);
    case UPC_ULONG:
    case UPC_UINT64:
      return update_number<uint64_t>(u);
    case UPC_FLOAT:
      return update_number<float>(u);
    case UPC_DOUBLE:
      return update_number<double>(u);
    default:
      return update_pointer(u);
  }
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

mob_upc_ptr_t upc_all_atomicdomain_alloc(upc_type_t type, upc_op_t ops, upc_atomichint_t) {
  constexpr const char* kCall = "upc_all_atomicdomain_alloc";
  check_started(kCall);
  if (operations(type) == 0) {
    die(kCall,
        "type %d has no atomic operations; use one of UPC_INT, UPC_UINT, UPC_LONG, UPC_ULONG, "
        "UPC_INT32, UPC_UINT32, UPC_INT64, UPC_UINT64, UPC_FLOAT, UPC_DOUBLE, UPC_PTS",
        type);
  }
  if (ops == 0 || (ops & ~operations(type)) != 0) {
    die(kCall, "ops 0x%lx: type %d has 0x%lx", ops, type, operations(type));
  }
  const mob_upc_ptr_t made = upc_all_alloc(static_cast<size_t>(threads()), sizeof(Domain));
  if (mob_upc_is_null(made)) die(kCall, "no shared memory for a domain");
  auto* const mine = static_cast<Domain*>(mob_upc_local(made.offset));
  const bool is_word =
      type == UPC_LONG || type == UPC_ULONG || type == UPC_INT64 || type == UPC_UINT64;
  *mine = {kLive, ops, is_word ? ops & (UPC_ADD | UPC_SUB | UPC_SET) : 0, type};
  return made;
}

void upc_all_atomicdomain_free(mob_upc_ptr_t ptr) {
  constexpr const char* kCall = "upc_all_atomicdomain_free";
  check_started(kCall);
  if (!mob_upc_is_null(ptr)) {
    static_cast<void>(find(ptr, kCall));
    static_cast<Domain*>(mob_upc_local(ptr.offset))->state = 0;
  }
  upc_all_free(ptr);
}

void upc_atomic_relaxed(mob_upc_ptr_t domain, void* fetch_ptr, upc_op_t op, mob_upc_ptr_t target,
                        const void* operand1, const void* operand2) {
  constexpr const char* kCall = "upc_atomic_relaxed";
  if (update_quickly(domain, op, target, operand1, operand2, fetch_ptr)) return;
  const Domain& found = find(domain, kCall);
  check_pointer(target, kCall, "target");
  if (mob_upc_bases_[target.thread] == nullptr) order_read(target, sizeof(mob_upc_ptr_t), kCall);
  update(found, {static_cast<mob_rank_t>(target.thread), remote(target), op, operand1, operand2,
                 fetch_ptr, kCall});
}

void upc_atomic_strict(mob_upc_ptr_t domain, void* fetch_ptr, upc_op_t op, mob_upc_ptr_t target,
                       const void* operand1, const void* operand2) {
  constexpr const char* kCall = "upc_atomic_strict";
  const Domain& found = find(domain, kCall);
  check_pointer(target, kCall, "target");
  mob_upc_fence();
  update(found, {static_cast<mob_rank_t>(target.thread), remote(target), op, operand1, operand2,
                 fetch_ptr, kCall});
  mob_upc_fence();
}

int upc_atomic_isfast(upc_type_t type, upc_op_t ops, mob_upc_ptr_t addr) {
  if (type == UPC_PTS || (ops & ~operations(type)) != 0) return 0;
  return mob_upc_is_null(addr) || mob_upc_bases_[addr.thread] != nullptr ? 1 : 0;
}

}  // extern "C"

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_POINTER_HPP
#define MOBIUS_POINTER_HPP

/**
 * @file
 * Put, get and atomic updates through typed pointers to the memory of any rank.
 *
 * Each function calls the C function that it names, with sizes and types filled in. The C
 * function's documentation is the contract: completion, order, atomicity and every error. All throw
 * mob::Error where it returns an error. Single values of 1, 2, 4 and 8 bytes, and updates of words,
 * are inlined like their C functions, to the same instructions. Thread safety: any. */

#include <mobius/atomic.h>
#include <mobius/rma.h>
#include <mobius/types.hpp>
#include <mobius/wait.hpp>

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <type_traits>

namespace mob {

/**
 * Points to an object of a rank: the rank in the job, and the object's address there. A value like
 * any pointer: it owns nothing, may dangle, and can itself be put, or sent in a message.
 *
 * Spans may be empty; then nothing is done, as in C with 0 bytes. Addresses of elements must be
 * aligned to their type where the C function requires it.
 */
template <Transferable T>
class Pointer {
 public:
  using element_type = T;                 /**< as std::pointer_traits wants it */
  using difference_type = std::ptrdiff_t; /**< likewise */

  /** Points to nothing: rank 0, address null. */
  constexpr Pointer() = default;
  /**
   * @param rank     the owner, a rank of the job
   * @param address  the address that the object has in its owner: memory that was allocated,
   *                 published or exposed. The calls that use it check it.
   */
  constexpr Pointer(mob_rank_t rank, T* address) noexcept : rank_(rank), address_(address) {}

  /** @return the owner's rank in the job */
  [[nodiscard]] constexpr mob_rank_t rank() const noexcept { return rank_; }
  /** @return the address in the owner; other processes must not dereference it: see mapped() */
  [[nodiscard]] constexpr T* address() const noexcept { return address_; }
  /** @return true if the address is not null */
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return address_ != nullptr; }

  /**
   * Returns a pointer through which the caller can load and store a local peer's object directly:
   * mob_ptr().
   * @throws Error  MOB_ERR_RANK if the owner is on another host, and if mob_ptr() fails
   */
  [[nodiscard]] T* mapped() const {
    void* pointer = nullptr;
    check(mob_ptr(rank_, address_, &pointer));
    return static_cast<T*>(pointer);
  }

  /**
   * Points to a member of the object; for an array, to its first element.
   * `p.member(&Slot::ready).put(1);`
   * @param which  the member
   */
  template <typename Member, typename Class>
    requires std::is_class_v<T> && std::same_as<Class, T> && std::is_object_v<Member>
  [[nodiscard]] auto member(Member Class::* which) const noexcept {
    using Inner = std::remove_all_extents_t<Member>;
    return Pointer<Inner>(rank_, reinterpret_cast<Inner*>(&(address_->*which)));
  }

  /**
   * Moves to another element of the array. Only the calls that use a pointer detect one outside the
   * array.
   */
  Pointer& operator+=(std::ptrdiff_t distance) noexcept {
    const uintptr_t bytes = static_cast<uintptr_t>(distance) * sizeof(T);  // may wrap
    address_ = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address_) + bytes);
    return *this;
  }
  Pointer& operator-=(std::ptrdiff_t distance) noexcept {
    const uintptr_t bytes = static_cast<uintptr_t>(distance) * sizeof(T);
    address_ = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address_) - bytes);
    return *this;
  }
  Pointer& operator++() noexcept { return *this += 1; }
  Pointer& operator--() noexcept { return *this -= 1; }
  [[nodiscard]] friend Pointer operator+(Pointer pointer, std::ptrdiff_t distance) noexcept {
    return pointer += distance;
  }
  [[nodiscard]] friend Pointer operator-(Pointer pointer, std::ptrdiff_t distance) noexcept {
    return pointer -= distance;
  }
  /** The number of elements from `b` to `a`, both of one rank. */
  [[nodiscard]] friend std::ptrdiff_t operator-(Pointer a, Pointer b) noexcept {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<uintptr_t>(a.address_) -
                                       reinterpret_cast<uintptr_t>(b.address_)) /
           static_cast<std::ptrdiff_t>(sizeof(T));
  }
  /** Orders by rank, then by address. */
  [[nodiscard]] friend constexpr auto operator<=>(const Pointer&, const Pointer&) = default;
  [[nodiscard]] friend constexpr bool operator==(const Pointer&, const Pointer&) = default;

  /**
   * Puts one value: mob_put8() … mob_put1() if it has that size, else mob_put(). Local completion
   * at return.
   */
  [[gnu::always_inline]] void put(const T& value) const {
    if constexpr (sizeof(T) == 8) {
      check(mob_put8(rank_, address_, std::bit_cast<uint64_t>(value)));
    } else if constexpr (sizeof(T) == 4) {
      check(mob_put4(rank_, address_, std::bit_cast<uint32_t>(value)));
    } else if constexpr (sizeof(T) == 2) {
      check(mob_put2(rank_, address_, std::bit_cast<uint16_t>(value)));
    } else if constexpr (sizeof(T) == 1) {
      check(mob_put1(rank_, address_, std::bit_cast<uint8_t>(value)));
    } else {
      check(mob_put(rank_, address_, &value, sizeof(T)));
    }
  }

  /** Gets one value: mob_get8() … mob_get1() if it has that size, else mob_get(). */
  [[nodiscard, gnu::always_inline]] T get() const {
    if constexpr (sizeof(T) == 8) {
      uint64_t value;
      check(mob_get8(rank_, address_, &value));
      return std::bit_cast<T>(value);
    } else if constexpr (sizeof(T) == 4) {
      uint32_t value;
      check(mob_get4(rank_, address_, &value));
      return std::bit_cast<T>(value);
    } else if constexpr (sizeof(T) == 2) {
      uint16_t value;
      check(mob_get2(rank_, address_, &value));
      return std::bit_cast<T>(value);
    } else if constexpr (sizeof(T) == 1) {
      uint8_t value;
      check(mob_get1(rank_, address_, &value));
      return std::bit_cast<T>(value);
    } else {
      std::array<std::byte, sizeof(T)> value;
      check(mob_get(rank_, address_, value.data(), value.size()));
      return std::bit_cast<T>(value);
    }
  }

  /** Puts the elements of `values`: mob_put(). Local completion at return. */
  void put(std::span<const T> values) const {
    check(mob_put(rank_, address_, values.data(), values.size_bytes()));
  }

  /** Gets as many elements as `values` has: mob_get(). */
  void get(std::span<T> values) const {
    check(mob_get(rank_, address_, values.data(), values.size_bytes()));
  }

  /** Starts a put: mob_put_nb(). `values` must stay unchanged until the handle is complete. */
  [[nodiscard]] Handle put_nb(std::span<const T> values) const {
    mob_handle_t handle = MOB_HANDLE_DONE;
    check(mob_put_nb(rank_, address_, values.data(), values.size_bytes(), &handle));
    return Handle(handle);
  }

  /**
   * Starts a get: mob_get_nb(). `values` must stay, and hold the data when the handle is complete.
   */
  [[nodiscard]] Handle get_nb(std::span<T> values) const {
    mob_handle_t handle = MOB_HANDLE_DONE;
    check(mob_get_nb(rank_, address_, values.data(), values.size_bytes(), &handle));
    return Handle(handle);
  }

  /**
   * Starts a put: mob_put_nbi(). `values` must stay unchanged until mob_flush_local() or a flush.
   */
  void put_nbi(std::span<const T> values) const {
    check(mob_put_nbi(rank_, address_, values.data(), values.size_bytes()));
  }

  /**
   * Starts a get: mob_get_nbi(). `values` must stay, and hold the data after mob_flush_local() or a
   * flush.
   */
  void get_nbi(std::span<T> values) const {
    check(mob_get_nbi(rank_, address_, values.data(), values.size_bytes()));
  }

  /**
   * Puts the elements of `values`, then changes a signal word of the same rank: mob_put_signal().
   * @param signal  outside the elements written
   * @throws Error  MOB_ERR_ARGUMENT also if `signal` belongs to another rank
   */
  void put_signal(std::span<const T> values, Pointer<uint64_t> signal, uint64_t value,
                  mob_signal_op_t op = MOB_SIGNAL_SET) const {
    check_signal(signal);
    check(mob_put_signal(rank_, address_, values.data(), values.size_bytes(), signal.address(),
                         value, op));
  }

  /**
   * Gets as many elements as `values` has, then changes a signal word of the same rank:
   * mob_get_signal(). As put_signal().
   */
  void get_signal(std::span<T> values, Pointer<uint64_t> signal, uint64_t value,
                  mob_signal_op_t op = MOB_SIGNAL_SET) const {
    check_signal(signal);
    check(mob_get_signal(rank_, address_, values.data(), values.size_bytes(), signal.address(),
                         value, op));
  }

  /** Combines `values` with the target's elements: mob_accumulate(). Local completion at return. */
  void accumulate(std::span<const T> values, mob_op_t op = MOB_SUM) const
    requires Reducible<T>
  {
    check(mob_accumulate(rank_, address_, values.data(), values.size(), type_of<T>, op));
  }

  /** Combines `value` with the target's element: mob_accumulate(). */
  void accumulate(const T& value, mob_op_t op = MOB_SUM) const
    requires Reducible<T>
  {
    check(mob_accumulate(rank_, address_, &value, 1, type_of<T>, op));
  }

  /** Adds scale × `values` to the target's elements: mob_accumulate_scaled(). */
  void accumulate_scaled(std::span<const T> values, const T& scale) const
    requires Reducible<T>
  {
    check(mob_accumulate_scaled(rank_, address_, values.data(), values.size(), type_of<T>, &scale));
  }

  /**
   * Combines elements with the target's and fetches the target's former elements:
   * mob_fetch_accumulate().
   * @param old     out: as many elements as `values`; must not overlap them
   * @throws Error  MOB_ERR_ARGUMENT also if it has another number of elements
   */
  void fetch_accumulate(std::span<const T> values, std::span<T> old, mob_op_t op = MOB_SUM) const
    requires Reducible<T>
  {
    if (old.size() != values.size()) {
      detail::raise(MOB_ERR_ARGUMENT, "mob::Pointer: values and old ones differ in number");
    }
    check(mob_fetch_accumulate(rank_, address_, values.data(), old.data(), values.size(),
                               type_of<T>, op));
  }

  /**
   * Combines one element with the target's: mob_fetch_op(). Complete at return.
   * @return the target's former element
   */
  T fetch_op(const T& value, mob_op_t op) const
    requires Reducible<T>
  {
    T old;
    check(mob_fetch_op(rank_, address_, type_of<T>, op, &value, &old));
    return old;
  }

  /**
   * Adds to a word: mob_fetch_add8() or mob_fetch_add4(). Complete at return.
   * @return the former value
   */
  [[gnu::always_inline]] T fetch_add(T value) const
    requires Word<T>
  {
    Bits<T> old;
    if constexpr (sizeof(T) == 8) {
      check(mob_fetch_add8(rank_, address_, static_cast<uint64_t>(value), &old));
    } else {
      check(mob_fetch_add4(rank_, address_, static_cast<uint32_t>(value), &old));
    }
    return static_cast<T>(old);
  }

  /** Replaces a word by its bitwise and with `value`; as fetch_add(). */
  [[gnu::always_inline]] T fetch_and(T value) const
    requires Word<T>
  {
    Bits<T> old;
    if constexpr (sizeof(T) == 8) {
      check(mob_fetch_and8(rank_, address_, static_cast<uint64_t>(value), &old));
    } else {
      check(mob_fetch_and4(rank_, address_, static_cast<uint32_t>(value), &old));
    }
    return static_cast<T>(old);
  }

  /** Replaces a word by its bitwise or with `value`; as fetch_add(). */
  [[gnu::always_inline]] T fetch_or(T value) const
    requires Word<T>
  {
    Bits<T> old;
    if constexpr (sizeof(T) == 8) {
      check(mob_fetch_or8(rank_, address_, static_cast<uint64_t>(value), &old));
    } else {
      check(mob_fetch_or4(rank_, address_, static_cast<uint32_t>(value), &old));
    }
    return static_cast<T>(old);
  }

  /** Replaces a word by its bitwise exclusive or with `value`; as fetch_add(). */
  [[gnu::always_inline]] T fetch_xor(T value) const
    requires Word<T>
  {
    Bits<T> old;
    if constexpr (sizeof(T) == 8) {
      check(mob_fetch_xor8(rank_, address_, static_cast<uint64_t>(value), &old));
    } else {
      check(mob_fetch_xor4(rank_, address_, static_cast<uint32_t>(value), &old));
    }
    return static_cast<T>(old);
  }

  /** Replaces a word by `value`; as fetch_add(). */
  [[gnu::always_inline]] T swap(T value) const
    requires Word<T>
  {
    Bits<T> old;
    if constexpr (sizeof(T) == 8) {
      check(mob_swap8(rank_, address_, static_cast<uint64_t>(value), &old));
    } else {
      check(mob_swap4(rank_, address_, static_cast<uint32_t>(value), &old));
    }
    return static_cast<T>(old);
  }

  /**
   * Replaces a word by `desired` if it holds `expected`: mob_compare_swap8() or
   * mob_compare_swap4(). Otherwise as fetch_add().
   * @return the former value: `expected` if the word was replaced
   */
  [[gnu::always_inline]] T compare_swap(T expected, T desired) const
    requires Word<T>
  {
    Bits<T> old;
    if constexpr (sizeof(T) == 8) {
      check(mob_compare_swap8(rank_, address_, static_cast<uint64_t>(expected),
                              static_cast<uint64_t>(desired), &old));
    } else {
      check(mob_compare_swap4(rank_, address_, static_cast<uint32_t>(expected),
                              static_cast<uint32_t>(desired), &old));
    }
    return static_cast<T>(old);
  }

 private:
  template <typename U>
  using Bits = std::conditional_t<sizeof(U) == 8, uint64_t, uint32_t>;

  void check_signal(Pointer<uint64_t> signal) const {
    if (MOB_UNLIKELY(signal.rank() != rank_)) {
      detail::raise(MOB_ERR_ARGUMENT, "mob::Pointer: the signal is a word of another rank");
    }
  }

  mob_rank_t rank_ = 0;
  T* address_ = nullptr;
};

}  // namespace mob

#endif

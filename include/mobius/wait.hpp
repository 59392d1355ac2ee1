/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_WAIT_HPP
#define MOBIUS_WAIT_HPP

/**
 * @file
 * Waiting for words of the caller's memory by their type, and for started transfers. */

#include <mobius/transfer.h>
#include <mobius/types.hpp>
#include <mobius/wait.h>

#include <utility>

namespace mob {

/**
 * Waits until the comparison of a word with a value holds: mob_wait_until_i4() and related calls,
 * chosen by the type of the word. Inlined.
 *
 * @param word     aligned memory of the caller
 * @param compare  the comparison
 * @param value    the value to compare with
 * @throws Error   if mob_wait_until_i4() fails
 *
 * Blocks, makes progress; wait.h says what wakes it. Thread safety: any.
 */
template <Word T>
void wait_until(const T* word, mob_compare_t compare, std::type_identity_t<T> value) {
  if constexpr (sizeof(T) == 8 && std::is_signed_v<T>) {
    check(mob_wait_until_i8(reinterpret_cast<const int64_t*>(word), compare, value));
  } else if constexpr (sizeof(T) == 8) {
    check(mob_wait_until_u8(reinterpret_cast<const uint64_t*>(word), compare, value));
  } else if constexpr (std::is_signed_v<T>) {
    check(mob_wait_until_i4(reinterpret_cast<const int32_t*>(word), compare, value));
  } else {
    check(mob_wait_until_u4(reinterpret_cast<const uint32_t*>(word), compare, value));
  }
}

/**
 * Tests whether the comparison of a word with a value holds: mob_test_until_i4() and related calls.
 *
 * @param word, compare, value  as wait_until()
 * @return whether it holds
 * @throws Error if mob_test_until_i4() fails
 *
 * Does not block; makes progress if the comparison does not hold. Thread safety: any.
 */
template <Word T>
[[nodiscard]] bool test_until(const T* word, mob_compare_t compare, std::type_identity_t<T> value) {
  int done = 0;
  if constexpr (sizeof(T) == 8 && std::is_signed_v<T>) {
    check(mob_test_until_i8(reinterpret_cast<const int64_t*>(word), compare, value, &done));
  } else if constexpr (sizeof(T) == 8) {
    check(mob_test_until_u8(reinterpret_cast<const uint64_t*>(word), compare, value, &done));
  } else if constexpr (std::is_signed_v<T>) {
    check(mob_test_until_i4(reinterpret_cast<const int32_t*>(word), compare, value, &done));
  } else {
    check(mob_test_until_u4(reinterpret_cast<const uint32_t*>(word), compare, value, &done));
  }
  return done != 0;
}

/**
 * A transfer or message that was started. Owns its mob_handle_t. Its destructor waits for local
 * completion, so declare it after the buffer. Movable, not copyable.
 *
 * Thread safety: one thread per handle.
 */
class [[nodiscard]] Handle {
 public:
  /** Makes a handle that is complete. */
  Handle() = default;
  /** Takes ownership of `handle`, which the C interface made. */
  explicit Handle(mob_handle_t handle) noexcept : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(other.release()) {}
  /** Waits for the handle that it held, as the destructor does. */
  Handle& operator=(Handle&& other) noexcept {
    const Handle former(std::exchange(handle_, other.release()));
    return *this;
  }
  /**
   * Waits for local completion, also while an exception unwinds the stack. Does not report an error
   * of the transfer. In a handler that must not wait, it gives the handle up.
   */
  ~Handle() {
    if (handle_ != MOB_HANDLE_DONE) static_cast<void>(mob_wait(&handle_));
  }

  /** Waits for local completion: mob_wait(). @throws Error if it fails */
  void wait() { check(mob_wait(&handle_)); }

  /**
   * Tests for local completion: mob_test(). Does not block.
   * @return        whether it is complete
   * @throws Error  if mob_test() fails
   */
  [[nodiscard]] bool test() {
    int done = 0;
    check(mob_test(&handle_, &done));
    return done != 0;
  }

  /** @return the handle, for the C interface; the caller owns it now */
  [[nodiscard]] mob_handle_t release() noexcept { return std::exchange(handle_, MOB_HANDLE_DONE); }

 private:
  friend void wait_all(std::span<Handle> handles);
  friend size_t wait_any(std::span<Handle> handles);
  static mob_handle_t* raw(std::span<Handle> handles) {
    static_assert(sizeof(Handle) == sizeof(mob_handle_t) && std::is_standard_layout_v<Handle>);
    return handles.empty() ? nullptr : &handles.front().handle_;
  }

  mob_handle_t handle_ = MOB_HANDLE_DONE;
};

/**
 * Waits for local completion of all `handles`: mob_wait_all().
 * @throws Error  the first error; all handles were waited for in that case too
 */
inline void wait_all(std::span<Handle> handles) {
  if (!handles.empty()) check(mob_wait_all(Handle::raw(handles), handles.size()));
}

/**
 * Waits for local completion of one handle: mob_wait_any().
 * @return        its index; `handles.size()` if all were complete
 * @throws Error  if it fails
 */
[[nodiscard]] inline size_t wait_any(std::span<Handle> handles) {
  size_t index = 0;
  if (!handles.empty()) check(mob_wait_any(Handle::raw(handles), handles.size(), &index));
  return index;
}

}  // namespace mob

#endif

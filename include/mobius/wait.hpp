/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_WAIT_HPP
#define MOBIUS_WAIT_HPP

/**
 * @file
 * Waiting for words of the own memory by their type, and for transfers that were started.
 */

#include <mobius/transfer.h>
#include <mobius/types.hpp>
#include <mobius/wait.h>

#include <utility>

namespace mob {

/**
 * Waits until a word compares with a value as asked: mob_wait_until_i4() and its kin, by the type
 * of the word. Inlined.
 *
 * @param word     aligned memory of the caller
 * @param compare  how
 * @param value    what with
 * @throws Error   as mob_wait_until_i4() fails
 *
 * Blocks, makes progress; wakes as wait.h says. Thread safety: any.
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
 * Asks whether a word compares with a value as asked: mob_test_until_i4() and its kin.
 *
 * @param word, compare, value  as wait_until()
 * @return whether it does
 * @throws Error as mob_test_until_i4() fails
 *
 * Does not block; makes progress when the answer is no. Thread safety: any.
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
 * A transfer or message that was started. Owns its mob_handle_t: complete locally at the latest
 * when it is destroyed, so declare it after the buffer. Moves; not copied.
 *
 * Thread safety: one thread per handle.
 */
class [[nodiscard]] Handle {
 public:
  /** One that is complete. */
  Handle() = default;
  /** Takes a handle of the C interface over. */
  explicit Handle(mob_handle_t handle) noexcept : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(other.release()) {}
  /** What it held before is waited for, as by the destructor. */
  Handle& operator=(Handle&& other) noexcept {
    const Handle former(std::exchange(handle_, other.release()));
    return *this;
  }
  /** Waits for local completion, also while an exception unwinds the stack; an error of the
   * transfer is not told. In a handler that must not wait, the handle is given up. */
  ~Handle() {
    if (handle_ != MOB_HANDLE_DONE) static_cast<void>(mob_wait(&handle_));
  }

  /** Waits for local completion: mob_wait(). @throws Error as it fails */
  void wait() { check(mob_wait(&handle_)); }

  /** Asks for local completion: mob_test(); does not block. @return whether it is complete
   *  @throws Error as mob_test() fails */
  [[nodiscard]] bool test() {
    int done = 0;
    check(mob_test(&handle_, &done));
    return done != 0;
  }

  /** @return the handle, for the C interface, which is the caller's now */
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

/** Waits for local completion of all: mob_wait_all(). @throws Error the first error; all were
 *  waited for then, too */
inline void wait_all(std::span<Handle> handles) {
  if (!handles.empty()) check(mob_wait_all(Handle::raw(handles), handles.size()));
}

/** Waits for local completion of one: mob_wait_any(). @return its index; `handles.size()` if all
 *  were complete @throws Error as it fails */
[[nodiscard]] inline size_t wait_any(std::span<Handle> handles) {
  size_t index = 0;
  if (!handles.empty()) check(mob_wait_any(Handle::raw(handles), handles.size(), &index));
  return index;
}

}  // namespace mob

#endif

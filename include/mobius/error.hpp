/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ERROR_HPP
#define MOBIUS_ERROR_HPP

/**
 * @file
 * Errors as exceptions, and the common part of owners.
 *
 * **An exception in one rank does not end the collective calls of the others.** If a rank leaves by
 * an exception before a collective call, the other ranks wait in that call until the rank's process
 * ends without mob_finalize(). Then it has died (failure.h), and by default the launcher ends the
 * job. So let exceptions that the program cannot handle leave main(), or end the job by
 * mob_abort():
 *
 * @code
 * int main() try {
 *   const mob::Job job;
 *   …
 * } catch (const std::exception& error) {
 *   mob_abort(1, error.what());
 * }
 * @endcode
 *
 * For the same reason an owner whose freeing is collective (mob::Job, mob::Team, mob::Array) does
 * nothing in its destructor while an exception that was thrown in its lifetime unwinds the stack:
 * the other members may be elsewhere. Its object stays until mob_finalize(). A program that catches
 * such an exception and continues must do so in all members alike. */

#include <mobius/status.h>

#include <exception>
#include <stdexcept>
#include <utility>

#if __cplusplus < 202002L
#error "The C++ interface of Moebius needs C++20 (-std=c++20)"
#endif

namespace mob {

/** A failed call. what() is the text of mob_last_error(). */
class Error : public std::runtime_error {
 public:
  /**
   * @param status  the status that the call returned, not MOB_OK
   * @param text    the reason; copied
   */
  Error(mob_status_t status, const char* text) : std::runtime_error(text), status_(status) {}

  /**
   * @return the status that the call returned; the C function documents its meaning and what it
   *         leaves behind
   */
  [[nodiscard]] mob_status_t status() const noexcept { return status_; }

 private:
  mob_status_t status_;
};

namespace detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void raise(mob_status_t status) {
  throw Error(status, mob_last_error());
}
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(mob_status_t status, const char* text) {
  throw Error(status, text);
}

}  // namespace detail

/**
 * Throws if a call of the C interface failed: `mob::check(mob_flush(rank));`. Most of that
 * interface needs nothing more in C++.
 *
 * @param status  the status that the call returned; MOB_OK does nothing
 * @throws Error  with the text of the calling thread's last failed call
 *
 * Thread safety: any. Do not let it throw out of a handler or another function that C calls.
 */
[[gnu::always_inline]] inline void check(mob_status_t status) {
  if (MOB_UNLIKELY(status != MOB_OK)) detail::raise(status);
}

namespace detail {

/* Throws if a result is negative, and therefore a status. */
template <typename Number>
[[nodiscard]] Number checked(Number result) {
  if (MOB_UNLIKELY(result < 0)) raise(static_cast<mob_status_t>(result));
  return result;
}

/* The product of two sizes; throws if it overflows. */
[[nodiscard]] inline size_t product(size_t count, size_t size) {
  size_t result = 0;
  if (__builtin_mul_overflow(count, size, &result)) {
    raise(MOB_ERR_RANGE, "mob: a size in bytes overflows");
  }
  return result;
}

/* Tells whether an exception that was thrown in the lifetime of this object unwinds the stack. */
class Unwinding {
 public:
  Unwinding() = default;
  Unwinding(const Unwinding&) noexcept {}
  Unwinding& operator=(const Unwinding&) noexcept { return *this; }
  [[nodiscard]] explicit operator bool() const noexcept {
    return std::uncaught_exceptions() > before_;
  }

 private:
  int before_ = std::uncaught_exceptions();
};

/* Owns an object that kFree frees; null: none. */
template <typename Object, mob_status_t (*kFree)(Object), bool kCollective>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Object object) noexcept : object_(object) {}
  Owner(Owner&& other) noexcept : object_(other.release()) {}
  Owner& operator=(Owner&& other) noexcept {
    const Owner former(std::exchange(object_, other.release()));
    return *this;
  }
  ~Owner() {
    if (object_ != nullptr && !(kCollective && unwinding_)) static_cast<void>(kFree(object_));
  }

  [[nodiscard]] Object get() const noexcept { return object_; }
  [[nodiscard]] Object release() noexcept { return std::exchange(object_, nullptr); }
  /* After these two statuses every object is still live. */
  [[nodiscard]] mob_status_t free() {
    if (object_ == nullptr) return MOB_OK;
    const mob_status_t status = kFree(object_);
    if (status != MOB_ERR_STATE && status != MOB_ERR_ARGUMENT) object_ = nullptr;
    return status;
  }

 private:
  Object object_ = nullptr;
  Unwinding unwinding_;
};

}  // namespace detail
}  // namespace mob

#endif

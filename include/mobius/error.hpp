/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ERROR_HPP
#define MOBIUS_ERROR_HPP

/**
 * @file
 * Errors as exceptions, and what owners have in common.
 *
 * **An exception in one rank does not end the collective calls of the others.** A rank that leaves
 * by an exception before a collective call that the others make lets them wait, until its process
 * ends without mob_finalize(): then it has died (failure.h), and by default the launcher ends the
 * job. So let exceptions that nobody can handle leave main(), or end the job by mob_abort():
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
 * the others may be elsewhere. What it owned stays until mob_finalize(). A program that catches
 * such an exception and goes on must do so in all members alike.
 */

#include <mobius/status.h>

#include <exception>
#include <stdexcept>
#include <utility>

#if __cplusplus < 202002L
#error "The C++ interface of Moebius needs C++20 (-std=c++20)"
#endif

namespace mob {

/** A call that failed. what() is what mob_last_error() said. */
class Error : public std::runtime_error {
 public:
  /** @param status  what the call returned, not MOB_OK
   *  @param text    what went wrong; copied */
  Error(mob_status_t status, const char* text) : std::runtime_error(text), status_(status) {}

  /** @return what the call returned; what that means and leaves behind its C function says */
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
 * Lets a call of the C interface throw: `mob::check(mob_flush(rank));`. Most of that interface
 * needs nothing more in C++.
 *
 * @param status  what the call returned; MOB_OK does nothing
 * @throws Error  with the text of the calling thread's last failed call
 *
 * Thread safety: any. Do not let it throw out of a handler or another function that C calls.
 */
[[gnu::always_inline]] inline void check(mob_status_t status) {
  if (MOB_UNLIKELY(status != MOB_OK)) detail::raise(status);
}

namespace detail {

/* A result that is negative where it is a status. */
template <typename Number>
[[nodiscard]] Number checked(Number result) {
  if (MOB_UNLIKELY(result < 0)) raise(static_cast<mob_status_t>(result));
  return result;
}

/* The product of two sizes. */
[[nodiscard]] inline size_t product(size_t count, size_t size) {
  size_t result = 0;
  if (__builtin_mul_overflow(count, size, &result)) {
    raise(MOB_ERR_RANGE, "mob: a size in bytes overflows");
  }
  return result;
}

/* Whether an exception that was thrown in the lifetime of this object unwinds the stack. */
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

/* Owns what kFree frees; null is none. */
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
  /* What was not freed remains: these two statuses say so of all that are owned. */
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

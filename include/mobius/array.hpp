/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARRAY_HPP
#define MOBIUS_ARRAY_HPP

/**
 * @file
 * Owned allocations of typed elements. */

#include <mobius/memory.h>
#include <mobius/pointer.hpp>
#include <mobius/team.hpp>

#include <utility>

namespace mob {

/**
 * Owns an allocation (memory.h) in which every member of a team has a part: an array of `T`. Its
 * bytes are 0 at first; no constructor runs. Movable. An object without an allocation has no
 * elements, and its at() and size(rank) throw Error with MOB_ERR_HANDLE.
 *
 * **Construction, free(), destruction and assignment are collective** over the team, in the same
 * order as its other allocations. The destructor frees nothing while an exception unwinds the stack
 * (error.hpp), and reports no errors, such as those of started transfers: call free() to see them.
 *
 * Thread safety: those four single, as mob_mem_alloc(); all else any.
 */
template <Transferable T>
class Array {
  static_assert(alignof(T) <= size_t{2} << 20, "parts are aligned to 2 MiB");

 public:
  /** Makes an object without an allocation. Local. */
  Array() = default;

  /**
   * Allocates: mob_team_alloc(). Collective over the team, blocks.
   * @param count   elements of the caller's part; may differ between members and be 0
   * @param team    the team whose members have parts; must not be freed before
   * @throws Error  if it fails, in every member; MOB_ERR_RANGE, before this rank has taken part, if
   *         the size in bytes overflows
   */
  explicit Array(size_t count, const Team& team = Team::world()) {
    mob_mem_t memory = nullptr;
    check(mob_team_alloc(team.handle(), detail::product(count, sizeof(T)), alignof(T), &memory));
    memory_ = detail::Owner<mob_mem_t, &mob_mem_free, true>(memory);
    if (count != 0) local_ = std::span<T>(static_cast<T*>(mob_mem_local(memory)), count);
  }

  Array(Array&& other) noexcept
      : memory_(std::move(other.memory_)), local_(std::exchange(other.local_, {})) {}
  /** Frees the allocation that it had; collective if it had one. */
  Array& operator=(Array&& other) noexcept {
    local_ = std::exchange(other.local_, {});
    memory_ = std::move(other.memory_);
    return *this;
  }
  /** Frees: mob_mem_free(), collective, blocks. */
  ~Array() = default;

  /**
   * Frees before destruction: mob_mem_free(). Collective, blocks; does nothing without an
   * allocation.
   * @throws Error  if it fails; with MOB_ERR_STATE and MOB_ERR_ARGUMENT the allocation is as
   *         before, else this object has none
   */
  void free() {
    const mob_status_t status = memory_.free();
    if (memory_.get() == nullptr) local_ = {};
    check(status);
  }

  /**
   * @return the caller's part, valid until it is freed; other processes may change it at any time
   */
  [[nodiscard]] std::span<T> local() const noexcept { return local_; }

  /**
   * @return the number of elements of a rank's part: mob_mem_bytes(). Local.
   * @param rank    in the job
   * @throws Error  if it fails
   */
  [[nodiscard]] size_t size(mob_rank_t rank) const {
    size_t bytes = 0;
    check(mob_mem_bytes(memory_.get(), rank, &bytes));
    return bytes / sizeof(T);
  }

  /**
   * Points to an element of a rank's part: mob_mem_address(). Local. It takes a look-up, so keep
   * pointers that a loop uses.
   * @param rank    in the job (mob::Team::world_rank())
   * @param index   element of its part, or the number of elements, for the end
   * @throws Error  if it fails; MOB_ERR_RANGE beyond the end
   */
  [[nodiscard]] Pointer<T> at(mob_rank_t rank, size_t index = 0) const {
    void* address = nullptr;
    check(mob_mem_address(memory_.get(), rank, detail::product(index, sizeof(T)), &address));
    return Pointer<T>(rank, static_cast<T*>(address));
  }

  /** @return the allocation for the C interface; this object still owns it */
  [[nodiscard]] mob_mem_t handle() const noexcept { return memory_.get(); }

 private:
  detail::Owner<mob_mem_t, &mob_mem_free, true> memory_;
  std::span<T> local_;
};

}  // namespace mob

#endif

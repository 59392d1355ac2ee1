/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TEAM_HPP
#define MOBIUS_TEAM_HPP

/**
 * @file
 * Owned teams, and their collective calls on typed buffers.
 *
 * Each function calls the C function that it names (team.h, collective.h), with sizes counted in
 * elements; the C function's documentation is the contract. Buffers are contiguous ranges:
 * std::vector, std::array, std::span, arrays. All throw mob::Error where the C function returns an
 * error. They also throw it, with MOB_ERR_ARGUMENT or MOB_ERR_RANGE, if numbers of elements do not
 * match, or overflow in bytes: then this rank has not taken part, and **the other members wait for
 * its corrected call** (error.hpp). The same holds if memory for a result cannot be allocated. */

#include <mobius/collective.h>
#include <mobius/memory.h>
#include <mobius/pointer.hpp>
#include <mobius/team.h>

#include <utility>
#include <vector>

namespace mob {

namespace detail {

inline mob_status_t free_team(mob_team_t team) {
  return team == MOB_TEAM_WORLD ? MOB_OK : mob_team_free(team);
}

/* A user's operation on elements of type T. Valid as long as `combine` lives. */
template <typename T, typename Combine>
[[nodiscard]] mob_user_op_t user_op(Combine& combine) {
  static_assert(alignof(T) <= 16, "elements are aligned to 16 bytes at most");
  mob_user_op_t op{};
  op.combine = [](void* accumulated, const void* in, size_t count, void* argument) noexcept {
    Combine& apply = *static_cast<Combine*>(argument);
    T* to = static_cast<T*>(accumulated);
    const T* from = static_cast<const T*>(in);
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<T>(apply(std::as_const(to[i]), from[i]));
  };
  op.argument = &combine;
  op.element_bytes = sizeof(T);
  return op;
}

}  // namespace detail

/**
 * An operation on elements: a mob_op_t, or a function of the lower ranks' element and another
 * element. The function must be associative, must not call the library, and must not throw: the
 * program ends if it does. */
template <typename Op, typename T>
concept Operation =
    Transferable<T> &&
    ((std::same_as<Op, mob_op_t> && Reducible<T>) ||
     (!std::same_as<Op, mob_op_t> && std::is_invocable_r_v<T, Op&, const T&, const T&>));

/**
 * Owns a team, and frees it when it is destroyed. That is collective over the team, and is left out
 * while an exception unwinds the stack (error.hpp). Free everything made on the team before.
 * Movable. An object without a team is false, and its calls throw Error with MOB_ERR_HANDLE.
 *
 * Thread safety: as the C functions, per team; rank(), size() and translations any.
 */
class Team {
 public:
  /** Makes an object without a team. */
  Team() = default;
  /** Takes ownership of `team`, which the C interface made. */
  explicit Team(mob_team_t team) noexcept : team_(team) {}
  /** @return the team of all processes, which is never freed */
  [[nodiscard]] static Team world() noexcept { return Team(MOB_TEAM_WORLD); }

  /**
   * @return whether there is a team; false for the result of a split in a rank that is in no new
   *         team
   */
  [[nodiscard]] explicit operator bool() const noexcept { return team_.get() != nullptr; }
  /** @return the team for the C interface; this object still owns it */
  [[nodiscard]] mob_team_t handle() const noexcept { return team_.get(); }
  /** @return the team; the caller owns it now */
  [[nodiscard]] mob_team_t release() noexcept { return team_.release(); }
  /**
   * Frees the team before destruction: mob_team_free(), collective; does nothing for the world or
   * without a team.
   * @throws Error  if it fails; with MOB_ERR_STATE the team is as before, else this object has none
   */
  void free() { check(team_.free()); }

  /** @return the caller's rank in the team: mob_team_rank(). @throws Error if it fails */
  [[nodiscard]] mob_rank_t rank() const { return detail::checked(mob_team_rank(handle())); }
  /** @return the number of members: mob_team_size(). @throws Error if it fails */
  [[nodiscard]] mob_rank_t size() const { return detail::checked(mob_team_size(handle())); }

  /**
   * Finds a member in another team: mob_team_translate(). Local.
   * @return        its rank there; -1 if it is not a member
   * @throws Error  if it fails
   */
  [[nodiscard]] mob_rank_t translate(mob_rank_t rank, const Team& to) const {
    mob_rank_t result = -1;
    check(mob_team_translate(handle(), rank, to.handle(), &result));
    return result;
  }
  /**
   * @param rank    a member's rank in this team
   * @return        its number, which mob::Pointer takes: mob_team_number(). Local.
   * @throws Error  if it fails
   */
  [[nodiscard]] mob_rank_t world_rank(mob_rank_t rank) const {
    return detail::checked(mob_team_number(handle(), rank));
  }

  /**
   * Makes teams by colour and key: mob_team_split(). A rank with a negative colour gets no team.
   * Collective.
   */
  [[nodiscard]] Team split(int colour, int key = 0) const {
    mob_team_t team = MOB_TEAM_NONE;
    check(mob_team_split(handle(), colour, key, &team));
    return Team(team);
  }
  /** Makes a team of every stride-th member: mob_team_split_strided(). Collective. */
  [[nodiscard]] Team split_strided(mob_rank_t start, mob_rank_t stride, mob_rank_t size) const {
    mob_team_t team = MOB_TEAM_NONE;
    check(mob_team_split_strided(handle(), start, stride, size, &team));
    return Team(team);
  }
  /** Makes a team of listed members: mob_team_split_list(). Collective. */
  [[nodiscard]] Team split_list(std::span<const mob_rank_t> ranks) const {
    mob_team_t team = MOB_TEAM_NONE;
    if (!std::in_range<mob_rank_t>(ranks.size())) {
      detail::raise(MOB_ERR_ARGUMENT, "mob::Team: more ranks than there can be");
    }
    check(
        mob_team_split_list(handle(), ranks.data(), static_cast<mob_rank_t>(ranks.size()), &team));
    return Team(team);
  }

  /** Makes a team of the members that are alive: mob_team_shrink(). Collective over these. */
  [[nodiscard]] Team shrink() const {
    mob_team_t team = MOB_TEAM_NONE;
    check(mob_team_shrink(handle(), &team));
    return Team(team);
  }
  /** @return the bits of `flags` that all living members have set: mob_team_agree() */
  [[nodiscard]] uint32_t agree(uint32_t flags) const {
    check(mob_team_agree(handle(), &flags));
    return flags;
  }

  /**
   * Gives every member one address of each member: mob_publish(). Collective, a barrier of the
   * team.
   * @param mine  in this rank's memory: allocated, exposed, or null
   * @return the pointers that the members published, by rank in the team
   */
  template <Transferable T>
  [[nodiscard]] std::vector<Pointer<T>> publish(T* mine) const {
    const mob_rank_t members = size();
    std::vector<void*> addresses(static_cast<size_t>(members));
    std::vector<Pointer<T>> pointers;
    pointers.reserve(addresses.size());
    check(mob_publish(handle(), mine, addresses.data()));
    for (mob_rank_t rank = 0; rank < members; ++rank) {
      pointers.emplace_back(world_rank(rank),
                            static_cast<T*>(addresses[static_cast<size_t>(rank)]));
    }
    return pointers;
  }

  /** Completes and orders the transfers of all members: mob_team_barrier(). */
  void barrier() const { check(mob_team_barrier(handle())); }

  /**
   * Copies the root's elements to all members: mob_broadcast().
   * @param values  in at the root, out elsewhere; the same number of elements everywhere
   */
  template <WritableBuffer Values>
  void broadcast(mob_rank_t root, Values&& values) const {
    const std::span elements(values);
    check(mob_broadcast(handle(), root, elements.data(), elements.size_bytes()));
  }
  /** @return the root's `value`, at all members: mob_broadcast() */
  template <Transferable T>
    requires(!std::ranges::range<T>)
  [[nodiscard]] T broadcast(mob_rank_t root, T value) const {
    check(mob_broadcast(handle(), root, &value, sizeof value));
    return value;
  }

  /**
   * Combines the members' elements at the root: mob_reduce() or mob_reduce_user().
   * @param out  at the root: as many elements as `in`, may be the same; ignored elsewhere
   */
  template <Buffer In, WritableBuffer Out, typename Op>
    requires std::same_as<Element<In>, Element<Out>> && Operation<Op, Element<In>>
  void reduce(mob_rank_t root, Op op, const In& in, Out&& out) const {
    using T = Element<In>;
    if (rank() == root) check_equal(std::ranges::size(in), std::ranges::size(out));
    if constexpr (std::same_as<Op, mob_op_t>) {
      check(mob_reduce(handle(), root, op, type_of<T>, std::ranges::data(in),
                       std::ranges::data(out), std::ranges::size(in)));
    } else {
      const mob_user_op_t user = detail::user_op<T>(op);
      check(mob_reduce_user(handle(), root, &user, std::ranges::data(in), std::ranges::data(out),
                            std::ranges::size(in)));
    }
  }
  /** @return the combined values at the root, `value` elsewhere: as reduce() of one element */
  template <Transferable T, typename Op>
    requires(!std::ranges::range<T>) && Operation<Op, T>
  [[nodiscard]] T reduce(mob_rank_t root, Op op, T value) const {
    reduce(root, op, std::span(&value, 1), std::span(&value, 1));
    return value;
  }

  /**
   * Combines the members' elements, with the result at all members: mob_allreduce() or
   * mob_allreduce_user().
   * @param out  as many elements as `in`; may be the same
   */
  template <Buffer In, WritableBuffer Out, typename Op>
    requires std::same_as<Element<In>, Element<Out>> && Operation<Op, Element<In>>
  void allreduce(Op op, const In& in, Out&& out) const {
    combine<Element<In>>(&mob_allreduce, &mob_allreduce_user, op, std::span(in), std::span(out));
  }
  /** @return the combination of every member's `value`: as allreduce() of one element */
  template <Transferable T, typename Op>
    requires(!std::ranges::range<T>) && Operation<Op, T>
  [[nodiscard]] T allreduce(Op op, T value) const {
    allreduce(op, std::span(&value, 1), std::span(&value, 1));
    return value;
  }

  /**
   * Combines the elements of the lower ranks and the caller's: mob_scan() or mob_scan_user(). As
   * allreduce().
   */
  template <Buffer In, WritableBuffer Out, typename Op>
    requires std::same_as<Element<In>, Element<Out>> && Operation<Op, Element<In>>
  void scan(Op op, const In& in, Out&& out) const {
    combine<Element<In>>(&mob_scan, &mob_scan_user, op, std::span(in), std::span(out));
  }
  /** @return the combination of `value` of the lower ranks and the caller: as scan() of one element
   */
  template <Transferable T, typename Op>
    requires(!std::ranges::range<T>) && Operation<Op, T>
  [[nodiscard]] T scan(Op op, T value) const {
    scan(op, std::span(&value, 1), std::span(&value, 1));
    return value;
  }

  /**
   * Combines the elements of the lower ranks: mob_exscan() or mob_exscan_user(). As allreduce(),
   * but at the first member `out` is not written.
   */
  template <Buffer In, WritableBuffer Out, typename Op>
    requires std::same_as<Element<In>, Element<Out>> && Operation<Op, Element<In>>
  void exscan(Op op, const In& in, Out&& out) const {
    combine<Element<In>>(&mob_exscan, &mob_exscan_user, op, std::span(in), std::span(out));
  }
  /**
   * @return the combination of `value` of the lower ranks; `first` at the first member: as exscan()
   *         of one element
   */
  template <Transferable T, typename Op>
    requires(!std::ranges::range<T>) && Operation<Op, T>
  [[nodiscard]] T exscan(Op op, const T& value, std::type_identity_t<T> first) const {
    exscan(op, std::span(&value, 1), std::span(&first, 1));
    return first;
  }

  /**
   * Collects every member's elements at the root: mob_gather().
   * @param in   the same number of elements everywhere
   * @param out  at the root: all members' elements, by rank; ignored elsewhere
   */
  template <Buffer In, WritableBuffer Out>
    requires std::same_as<Element<In>, Element<Out>>
  void gather(mob_rank_t root, const In& in, Out&& out) const {
    if (rank() == root) check_equal(of_all(std::ranges::size(in)), std::ranges::size(out));
    check(mob_gather(handle(), root, std::ranges::data(in), std::ranges::data(out),
                     std::span(in).size_bytes()));
  }

  /**
   * Collects every member's elements at all members: mob_allgather().
   * @param in   the same number of elements everywhere
   * @param out  all members' elements, by rank
   */
  template <Buffer In, WritableBuffer Out>
    requires std::same_as<Element<In>, Element<Out>>
  void allgather(const In& in, Out&& out) const {
    check_equal(of_all(std::ranges::size(in)), std::ranges::size(out));
    check(mob_allgather(handle(), std::ranges::data(in), std::ranges::data(out),
                        std::span(in).size_bytes()));
  }
  /** @return every member's `value`, by rank: as allgather() of one element */
  template <Transferable T>
    requires(!std::ranges::range<T> && std::is_default_constructible_v<T> && !std::same_as<T, bool>)
  [[nodiscard]] std::vector<T> allgather(const T& value) const {
    std::vector<T> values(of_all(1));
    allgather(std::span(&value, 1), values);
    return values;
  }

  /**
   * Gives every member its elements of the root's buffer: mob_scatter().
   * @param in   at the root: all members' elements, by rank; ignored elsewhere
   * @param out  the same number of elements everywhere
   */
  template <Buffer In, WritableBuffer Out>
    requires std::same_as<Element<In>, Element<Out>>
  void scatter(mob_rank_t root, const In& in, Out&& out) const {
    if (rank() == root) check_equal(std::ranges::size(in), of_all(std::ranges::size(out)));
    check(mob_scatter(handle(), root, std::ranges::data(in), std::ranges::data(out),
                      std::span(out).size_bytes()));
  }

  /**
   * Gives every member its elements of every member's buffer: mob_alltoall().
   * @param in   a multiple of size() elements, the same everywhere
   * @param out  as many elements; may be the same
   */
  template <Buffer In, WritableBuffer Out>
    requires std::same_as<Element<In>, Element<Out>>
  void alltoall(const In& in, Out&& out) const {
    const size_t block = std::ranges::size(in) / static_cast<size_t>(size());
    check_equal(std::ranges::size(in), of_all(block));
    check_equal(std::ranges::size(in), std::ranges::size(out));
    check(mob_alltoall(handle(), std::ranges::data(in), std::ranges::data(out),
                       block * sizeof(Element<In>)));
  }

 private:
  /* The number of elements of all members together. */
  [[nodiscard]] size_t of_all(size_t each) const {
    return detail::product(each, static_cast<size_t>(size()));
  }
  static void check_equal(size_t a, size_t b) {
    if (MOB_UNLIKELY(a != b)) {
      detail::raise(MOB_ERR_ARGUMENT, "mob::Team: numbers of elements do not fit together");
    }
  }

  template <typename T, typename Op>
  void combine(mob_status_t (*call)(mob_team_t, mob_op_t, mob_type_t, const void*, void*, size_t),
               mob_status_t (*user_call)(mob_team_t, const mob_user_op_t*, const void*, void*,
                                         size_t),
               Op& op, std::span<const T> in, std::span<T> out) const {
    check_equal(in.size(), out.size());
    if constexpr (std::same_as<Op, mob_op_t>) {
      check(call(handle(), op, type_of<T>, in.data(), out.data(), in.size()));
    } else {
      const mob_user_op_t user = detail::user_op<T>(op);
      check(user_call(handle(), &user, in.data(), out.data(), in.size()));
    }
  }

  detail::Owner<mob_team_t, &detail::free_team, true> team_;
};

}  // namespace mob

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_COLLECTIVE_H
#define MOBIUS_COLLECTIVE_H

/**
 * @file
 * Collective calls of a team: barrier, broadcast, reductions, gathering and exchange.
 *
 * The following holds for every function here:
 *
 * - **Collective.** All members of the team call it, in the same order as their other collective
 *   calls on that team, with the same root, sizes, type and operation. Ranks are ranks of the team.
 * - **Buffers** belong to the caller, may be any memory, and are not kept. When a call returns, the
 *   caller may change its inputs, and its outputs are complete. A buffer of no bytes may be null.
 *   Input and output must not overlap, except where a function says that they may be one.
 * - **Blocking.** A call returns when its own part is done. Only mob_team_barrier() promises that
 *   the other members have called it too: a root that only sends may return before any member has
 *   received. Between hosts all members meet after 32 such calls in a row, or some MiB. A member
 *   that must wait spins, yields, then sleeps (settings MOBIUS_SPIN_NS, MOBIUS_YIELDS), and makes
 *   progress.
 * - **Ordering.** A member that takes data sees everything that the giver wrote before it gave the
 *   data. Only mob_team_barrier() orders puts and gets of all members.
 * - **Thread safety:** per team: calls on one team are made one at a time; different threads may
 *   make calls on different teams at once.
 * - **Errors** that the calling process detects at once: MOB_ERR_STATE (also in a message handler),
 *   MOB_ERR_HANDLE (not a live team), MOB_ERR_RANK (the root is not in the team), MOB_ERR_ARGUMENT
 *   (a null buffer of more than 0 bytes, elements that are not aligned to their type, or as the
 *   function says) and MOB_ERR_RANGE (sizes that overflow). The process has then not taken part,
 *   nothing was written, and the other members wait for its corrected call.
 *   MOB_ERR_PEER: a member died or left the job; the team can only be freed.
 *   MOB_ERR_MEMORY: this process has no memory left. The team can only be freed, as after
 *   MOB_ERR_PEER; the other members get MOB_ERR_PEER.
 *   MOB_ERR_RANGE: memory that a member passed is not mapped, or is not writable. (If the member
 *   itself touches it, it crashes, as after any such access.) Members that did not detect this get
 *   MOB_ERR_PEER. The team remains usable.
 *
 * From 16 KiB on, members read and write each other's mob_mem_alloc() memory in place, with one
 * copy. They do so with private memory too, by cross-memory attach, if trials in the team's first
 * calls of that kind and size found it faster (MOBIUS_COLLECTIVES). All other data passes through
 * memory of the team, 64 KiB per member. In a team on several hosts this holds within each host.
 * The first trial allows every process of the user to attach to the members (PR_SET_PTRACER_ANY),
 * for good.
 *
 * Compare MPI-4 §6 and OpenSHMEM 1.5 §9.9. */

#include <mobius/team.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Waits until every member of the team has called it.
 *
 * Everything that any member wrote before, to its own or to other members' memory, is visible to
 * all members after it.
 *
 * @param team  the team
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_PEER, MOB_ERR_MEMORY, or an error of a
 *         transfer that mob_flush_all() would return, in which case the barrier is done
 *
 * Blocks, makes progress. Thread safety: per team.
 */
MOB_API mob_status_t mob_team_barrier(mob_team_t team);

/**
 * Copies the root's buffer to all members.
 *
 * @param team    the team
 * @param root    the member that has the data
 * @param buffer  in at the root, out elsewhere
 * @param bytes   its size, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_broadcast(mob_team_t team, mob_rank_t root, void* buffer, size_t bytes);

/**
 * Combines the vectors of all members, element by element, at the root.
 *
 * Reductions and scans combine in rank order, ((x0 op x1) op x2) …. The result is the same, bit for
 * bit, in every run and at every member, whatever the count and the place of the buffers.
 *
 * @param team   the team
 * @param root   the member that gets the result
 * @param op     an operation that is defined on the type (mob_op_is_defined()). MOB_REPLACE gives
 *               the last member's elements, MOB_NO_OP the first's.
 * @param type   type of the elements
 * @param in     the caller's elements, aligned to the type
 * @param out    out, at the root: the result, aligned to the type; may be `in`. Ignored elsewhere.
 * @param count  elements in each vector, the same everywhere; 0 does nothing
 * @return as described for this file; MOB_ERR_ARGUMENT also for an unknown type or an operation
 *         that is not defined on it
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_reduce(mob_team_t team, mob_rank_t root, mob_op_t op, mob_type_t type,
                                const void* in, void* out, size_t count);

/**
 * Reduces as mob_reduce(), with the result at every member. `in` may be `out`.
 *
 * @return as mob_reduce()
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_allreduce(mob_team_t team, mob_op_t op, mob_type_t type, const void* in,
                                   void* out, size_t count);

/**
 * Reduces as mob_reduce(), but member r gets x0 op … op xr. `in` may be `out`.
 *
 * @return as mob_reduce()
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_scan(mob_team_t team, mob_op_t op, mob_type_t type, const void* in,
                              void* out, size_t count);

/**
 * Reduces as mob_reduce(), but member r gets x0 op … op x(r-1). The first member's `out` is not
 * written and may be null. `in` may be `out`.
 *
 * @return as mob_reduce()
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_exscan(mob_team_t team, mob_op_t op, mob_type_t type, const void* in,
                                void* out, size_t count);

/** A user's operation. The caller owns the structure; the library does not keep it. */
typedef struct mob_user_op {
  /**
   * Computes accumulated[i] = accumulated[i] op in[i] for `count` elements; `accumulated` has the
   * values of lower ranks. The operation must be associative. Any member may call it, on any part
   * of the vectors, in the thread that makes the collective call. It must not call the library and
   * must not throw. Both pointers lie a multiple of element_bytes after an address that is aligned
   * to 16 bytes.
   */
  void (*combine)(void* accumulated, const void* in, size_t count, void* argument);
  void* argument;       /**< passed to combine; the caller owns it */
  size_t element_bytes; /**< size of an element, more than 0 */
  /**
   * Nonzero: x op y is y op x, which permits combining in another order than by rank. Processes of
   * one host do not use this permission.
   */
  int commutative;
} mob_user_op_t;

/**
 * Reduces as mob_reduce(), with a user's operation.
 *
 * @param team   the team
 * @param root   the member that gets the result
 * @param op     the operation, the same everywhere
 * @param in     the caller's elements
 * @param out    out, at the root: the result; may be `in`. Ignored elsewhere.
 * @param count  elements in each vector, the same everywhere; 0 does nothing
 * @return as described for this file; MOB_ERR_ARGUMENT also if `op` or its function is null, or its
 *         elements have no bytes
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_reduce_user(mob_team_t team, mob_rank_t root, const mob_user_op_t* op,
                                     const void* in, void* out, size_t count);

/**
 * Reduces as mob_reduce_user(), with the result at every member. `in` may be `out`.
 *
 * @return as mob_reduce_user()
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_allreduce_user(mob_team_t team, const mob_user_op_t* op, const void* in,
                                        void* out, size_t count);

/**
 * Scans as mob_scan(), with a user's operation. `in` may be `out`.
 *
 * @return as mob_reduce_user()
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_scan_user(mob_team_t team, const mob_user_op_t* op, const void* in,
                                   void* out, size_t count);

/**
 * Scans as mob_exscan(), with a user's operation. `in` may be `out`.
 *
 * @return as mob_reduce_user()
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_exscan_user(mob_team_t team, const mob_user_op_t* op, const void* in,
                                     void* out, size_t count);

/**
 * Collects one block of every member at the root.
 *
 * @param team   the team
 * @param root   the member that collects
 * @param in     the caller's block; at the root it may be its own block in `out`
 * @param out    out, at the root: the blocks by rank, size × bytes bytes. Ignored elsewhere.
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_gather(mob_team_t team, mob_rank_t root, const void* in, void* out,
                                size_t bytes);

/**
 * Collects as mob_gather(), with blocks of different sizes at any places.
 *
 * @param team           the team
 * @param root           the member that collects
 * @param in             the caller's block; at the root it may be its own block in `out`
 * @param bytes          size of the caller's block
 * @param out            out, at the root: receives the blocks. Ignored elsewhere.
 * @param counts         at the root: bytes of each member's block, by rank. Ignored elsewhere.
 * @param displacements  at the root: byte in `out` where each block starts; blocks must not
 *                       overlap. Ignored elsewhere.
 * @return as described for this file; MOB_ERR_ARGUMENT at the root if a member's size is not the
 *         one that the root expects: then all members have made the call, and `out` is unspecified
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_gatherv(mob_team_t team, mob_rank_t root, const void* in, size_t bytes,
                                 void* out, const size_t* counts, const size_t* displacements);

/**
 * Collects one block of every member at all members.
 *
 * @param team   the team
 * @param in     the caller's block; it may be its own block in `out`
 * @param out    out: the blocks by rank, size × bytes bytes
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_allgather(mob_team_t team, const void* in, void* out, size_t bytes);

/**
 * Collects as mob_allgather(), with blocks of different sizes at any places.
 *
 * @param team           the team
 * @param in             the caller's block; it may be its own block in `out`
 * @param out            out: receives the blocks
 * @param counts         bytes of each member's block, by rank; the same everywhere
 * @param displacements  byte in the caller's `out` where each block starts; blocks must not overlap
 * @return as described for this file
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_allgatherv(mob_team_t team, const void* in, void* out,
                                    const size_t* counts, const size_t* displacements);

/**
 * Gives every member one block of the root's buffer.
 *
 * @param team   the team
 * @param root   the member that has the blocks
 * @param in     at the root: the blocks by rank, size × bytes bytes. Ignored elsewhere.
 * @param out    out: the caller's block; at the root it may be its own block in `in`
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_scatter(mob_team_t team, mob_rank_t root, const void* in, void* out,
                                 size_t bytes);

/**
 * Gives every member one block of every member's buffer: block r of member s becomes block s of
 * member r.
 *
 * @param team   the team
 * @param in     a block for each member, by rank, size × bytes bytes; may be `out`
 * @param out    out: a block from each member, by rank, size × bytes bytes
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_alltoall(mob_team_t team, const void* in, void* out, size_t bytes);

/**
 * Exchanges as mob_alltoall(), with blocks of different sizes at any places. All lists have one
 * entry per member, by rank.
 *
 * @param team               the team
 * @param in                 the blocks to send; may be `out` if the lists of both are equal
 * @param in_counts          bytes for each member
 * @param in_displacements   byte in `in` where each block starts
 * @param out                out: the blocks from all members; they must not overlap
 * @param out_counts         bytes from each member: the size that this member has for the caller in
 *                           its in_counts
 * @param out_displacements  byte in `out` where each block starts
 * @return as described for this file; MOB_ERR_ARGUMENT also if the caller's two sizes for itself
 *         differ
 *
 * Blocks as described for this file. Thread safety: per team.
 */
MOB_API mob_status_t mob_alltoallv(mob_team_t team, const void* in, const size_t* in_counts,
                                   const size_t* in_displacements, void* out,
                                   const size_t* out_counts, const size_t* out_displacements);

#ifdef __cplusplus
}
#endif
#endif

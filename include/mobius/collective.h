/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_COLLECTIVE_H
#define MOBIUS_COLLECTIVE_H

/**
 * @file
 * What the members of a team do together: barrier, broadcast, reductions, gathering and exchanging.
 *
 * What holds for every function here:
 *
 * - **Collective.** All members of the team call it, in the same order as their other collective
 *   calls on that team, with the same root, sizes, type and operation. Ranks are ranks of the team.
 * - **Buffers** are the caller's, any memory, and not kept: when a call returns, its inputs may be
 *   changed and its outputs are complete. A buffer of no bytes may be null. Input and output do not
 *   overlap, except where a function says that they may be one.
 * - **Blocking.** A call returns when its own part is done. Only mob_team_barrier() promises that
 *   the others have come: a root that only gives may return before anybody took, though between
 *   hosts all meet after 32 such calls in a row, or some MiB. Who must wait
 *   spins, yields, then sleeps (settings MOBIUS_SPIN_NS, MOBIUS_YIELDS), and makes progress.
 * - **Ordering.** What a member wrote before it gave data is visible to who took that data. Only
 *   mob_team_barrier() orders puts and gets of all members.
 * - **Thread safety:** per team: calls on one team are made one at a time; calls on different teams
 *   may be made by different threads at once.
 * - **Errors.** MOB_ERR_STATE (also in a message handler), MOB_ERR_HANDLE (not a live team),
 *   MOB_ERR_RANK (the root is not in the team), MOB_ERR_ARGUMENT (a null buffer of more than no
 *   bytes, elements that are not aligned to their type, or what the function names) and
 *   MOB_ERR_RANGE (sizes that overflow) are found at once, in the process that made them: it has
 *   not taken part, nothing was written, and the others wait for its corrected call.
 *   MOB_ERR_PEER: a member died or left the job; the team can do nothing more but be freed.
 *   MOB_ERR_MEMORY: this process has none left; as MOB_ERR_PEER for the team, and the others, who
 *   cannot do without it, get that one.
 *   MOB_ERR_RANGE: what some member passed is not mapped, or not to be written (where the call
 *   touches it in this process it crashes, as any access would); members that did not see it get
 *   MOB_ERR_PEER. The team stays of use.
 *
 * From 16 KiB on, what lies in memory of mob_mem_alloc() is read and written by the others where it
 * lies, in one copy; private memory, too, by cross-memory attach, where trials in the team's first
 * calls of the kind and size found that faster (MOBIUS_COLLECTIVES). All else passes through memory
 * of the team, 64 KiB per member. Members on several hosts do so within each. The first trial
 * allows every process of the user to attach to the members (PR_SET_PTRACER_ANY), for good.
 *
 * Compare MPI-4 §6 and OpenSHMEM 1.5 §9.9.
 */

#include <mobius/team.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Waits until every member of the team called it.
 *
 * What any member wrote before, to its own or to others' memory, is visible to all members after.
 *
 * @param team  the team
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_PEER, MOB_ERR_MEMORY, or what a
 *         mob_flush_all() of transfers would return: the barrier has been then
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_barrier(mob_team_t team);

/**
 * Copies the root's buffer to all members.
 *
 * @param team    the team
 * @param root    who has the data
 * @param buffer  in at the root, out elsewhere
 * @param bytes   its size, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_broadcast(mob_team_t team, mob_rank_t root, void* buffer, size_t bytes);

/**
 * Combines the vectors of all members, element by element, at the root.
 *
 * Reductions and scans combine in rank order, ((x0 op x1) op x2) …: the result is the same, bit for
 * bit, in every run and for every member, whatever the count and wherever the buffers lie.
 *
 * @param team   the team
 * @param root   who gets the result
 * @param op     any operation that is defined on the type (mob_op_is_defined()). MOB_REPLACE gives
 *               the last member's elements, MOB_NO_OP the first's.
 * @param type   of the elements
 * @param in     the caller's elements, aligned to the type
 * @param out    out, at the root: the result, aligned to the type; may be `in`. Not looked at
 *               elsewhere.
 * @param count  elements in each, the same everywhere; 0 does nothing
 * @return as described for this file; MOB_ERR_ARGUMENT also for an unknown type or an operation
 *         that is not defined on it
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_reduce(mob_team_t team, mob_rank_t root, mob_op_t op, mob_type_t type,
                                const void* in, void* out, size_t count);

/** As mob_reduce(), with the result at every member. `in` may be `out`. */
MOB_API mob_status_t mob_allreduce(mob_team_t team, mob_op_t op, mob_type_t type, const void* in,
                                   void* out, size_t count);

/** As mob_reduce(), but each member r gets x0 op … op xr. `in` may be `out`. */
MOB_API mob_status_t mob_scan(mob_team_t team, mob_op_t op, mob_type_t type, const void* in,
                              void* out, size_t count);

/**
 * As mob_reduce(), but each member r gets x0 op … op x(r-1). The first member's `out` is not
 * written and may be null. `in` may be `out`.
 */
MOB_API mob_status_t mob_exscan(mob_team_t team, mob_op_t op, mob_type_t type, const void* in,
                                void* out, size_t count);

/** An operation of the user's. The structure is the caller's and not kept. */
typedef struct mob_user_op {
  /**
   * Computes accumulated[i] = accumulated[i] op in[i] for `count` elements; accumulated has the
   * values of lower ranks. Associative. It is called in any member, on any part of the vectors, by
   * the thread that makes the collective call; it makes no call to the library and does not throw.
   * Both pointers are a multiple of element_bytes behind one that is aligned to 16 bytes.
   */
  void (*combine)(void* accumulated, const void* in, size_t count, void* argument);
  void* argument;       /**< passed to combine; the operation's own */
  size_t element_bytes; /**< size of an element, more than 0 */
  /**
   * Nonzero: x op y is y op x. Permission to combine in another order than by rank, of which no use
   * is made between processes of one host.
   */
  int commutative;
} mob_user_op_t;

/**
 * As mob_reduce(), with an operation of the user's.
 *
 * @param team   the team
 * @param root   who gets the result
 * @param op     the operation, the same everywhere
 * @param in     the caller's elements
 * @param out    out, at the root: the result; may be `in`. Not looked at elsewhere.
 * @param count  elements in each, the same everywhere; 0 does nothing
 * @return as described for this file; MOB_ERR_ARGUMENT also for `op` or its function null and
 *         elements of no bytes
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_reduce_user(mob_team_t team, mob_rank_t root, const mob_user_op_t* op,
                                     const void* in, void* out, size_t count);

/** As mob_reduce_user(), with the result at every member. `in` may be `out`. */
MOB_API mob_status_t mob_allreduce_user(mob_team_t team, const mob_user_op_t* op, const void* in,
                                        void* out, size_t count);

/** As mob_scan(), with an operation of the user's. `in` may be `out`. */
MOB_API mob_status_t mob_scan_user(mob_team_t team, const mob_user_op_t* op, const void* in,
                                   void* out, size_t count);

/** As mob_exscan(), with an operation of the user's. `in` may be `out`. */
MOB_API mob_status_t mob_exscan_user(mob_team_t team, const mob_user_op_t* op, const void* in,
                                     void* out, size_t count);

/**
 * Collects one block of every member at the root.
 *
 * @param team   the team
 * @param root   who collects
 * @param in     the caller's block; at the root it may be its own block in `out`
 * @param out    out, at the root: the blocks by rank, size × bytes bytes. Not looked at elsewhere.
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_gather(mob_team_t team, mob_rank_t root, const void* in, void* out,
                                size_t bytes);

/**
 * As mob_gather(), with blocks of different sizes at any places.
 *
 * @param team           the team
 * @param root           who collects
 * @param in             the caller's block; at the root it may be its own block in `out`
 * @param bytes          size of the caller's block
 * @param out            out, at the root: where the blocks go. Not looked at elsewhere.
 * @param counts         at the root: bytes of each member's block, by rank. Not looked at
 * elsewhere.
 * @param displacements  at the root: byte in `out` where each block starts; blocks do not overlap.
 *                       Not looked at elsewhere.
 * @return as described for this file; MOB_ERR_ARGUMENT at the root, after the call was made by all
 *         and with `out` unspecified, if a member's size is not what the root expects
 *
 * Thread safety: per team.
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
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_allgather(mob_team_t team, const void* in, void* out, size_t bytes);

/**
 * As mob_allgather(), with blocks of different sizes at any places.
 *
 * @param team           the team
 * @param in             the caller's block; it may be its own block in `out`
 * @param out            out: where the blocks go
 * @param counts         bytes of each member's block, by rank; the same everywhere
 * @param displacements  byte in the caller's `out` where each block starts; blocks do not overlap
 * @return as described for this file
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_allgatherv(mob_team_t team, const void* in, void* out,
                                    const size_t* counts, const size_t* displacements);

/**
 * Gives every member one block of the root's buffer.
 *
 * @param team   the team
 * @param root   who gives
 * @param in     at the root: the blocks by rank, size × bytes bytes. Not looked at elsewhere.
 * @param out    out: the caller's block; at the root it may be its own block in `in`
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_scatter(mob_team_t team, mob_rank_t root, const void* in, void* out,
                                 size_t bytes);

/**
 * Gives every member one block of every member's buffer: block r of s becomes block s of r.
 *
 * @param team   the team
 * @param in     a block for each member, by rank, size × bytes bytes; may be `out`
 * @param out    out: a block from each member, by rank, size × bytes bytes
 * @param bytes  size of a block, the same everywhere; 0 does nothing
 * @return as described for this file
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_alltoall(mob_team_t team, const void* in, void* out, size_t bytes);

/**
 * As mob_alltoall(), with blocks of different sizes at any places. All lists have one entry per
 * member, by rank.
 *
 * @param team               the team
 * @param in                 the blocks to give; may be `out` if the lists of both are equal
 * @param in_counts          bytes for each member
 * @param in_displacements   byte in `in` where each block starts
 * @param out                out: the blocks from all; they do not overlap
 * @param out_counts         bytes from each member: what it has for the caller in its in_counts
 * @param out_displacements  byte in `out` where each block starts
 * @return as described for this file; MOB_ERR_ARGUMENT also if the caller's two sizes for itself
 *         differ
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_alltoallv(mob_team_t team, const void* in, const size_t* in_counts,
                                   const size_t* in_displacements, void* out,
                                   const size_t* out_counts, const size_t* out_displacements);

#ifdef __cplusplus
}
#endif
#endif

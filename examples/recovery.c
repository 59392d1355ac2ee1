/* SPDX-License-Identifier: BSD-3-Clause */

/* A computation that survives the death of its processes: the heat in a ring, cut into as many
 * parts as there are processes. Now and then each process copies its part into the memory of the
 * next one. When a process dies, the others go on without it, spawn a replacement, hand it the part
 * of the dead one from that copy, and compute again from there. The result is that of a run in
 * which nobody dies. Build and run, and kill any of the processes:
 *   mobcc recovery.c -o recovery && mobius run -n 4 --on-death error ./recovery 100000 */

#include <mobius/mobius.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 64, EVERY = 50 }; /* cells of a part; steps between two copies */

typedef struct {
  long step;
  double cells[CELLS];
} copy_t;

/* What the others write into, in memory that a team shares. */
typedef struct {
  double edges[2][2];   /* of the left and of the right neighbour, by even and odd steps */
  copy_t left[2];       /* of the left neighbour's part: the last copy and the one before */
  double handed[CELLS]; /* the part that a replacement gets */
} shared_t;

typedef struct {
  mob_team_t team; /* of as many members as there are parts */
  mob_mem_t mem;
  shared_t* shared;    /* this process' own */
  mob_rank_t parts;    /* how many */
  mob_rank_t part;     /* that of this process; -1: it has none yet */
  mob_rank_t* holders; /* the numbers of the processes that have them */
  long step;           /* of these cells: */
  double cells[CELLS];
  long saved;           /* the step of the last copy that all have made; -1: there is none */
  copy_t own[2];        /* the last copy and the one before */
  const shared_t* kept; /* where the neighbour's copies of these steps are */
} state_t;

static const char* program;
static long steps = 2000;

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error()); /* ends the job and says why */
}

static double initial(long cell) { return (double)(cell * 7919 % 1000); }

static void advance(double* to, const double* from, double left, double right, long count) {
  long i;
  for (i = 0; i < count; ++i) {
    const double before = i == 0 ? left : from[i - 1];
    const double after = i == count - 1 ? right : from[i + 1];
    to[i] = from[i] + 0.25 * (before - 2 * from[i] + after);
  }
}

/* Where the process that has a part, counted around the ring, has a field of shared_t. */
static void* address(const state_t* all, mob_rank_t part, size_t field, mob_rank_t* number) {
  void* found;
  *number = all->holders[(part + all->parts) % all->parts];
  check(mob_mem_address(all->mem, *number, field, &found));
  return found;
}

/* Copies all parts. Once this succeeds, no copy of an earlier step is needed. */
static mob_status_t save(state_t* all) {
  const int slot = (int)(all->step / EVERY % 2);
  copy_t* const own = &all->own[slot];
  mob_rank_t right;
  void* there;
  mob_status_t status;
  own->step = all->step;
  memcpy(own->cells, all->cells, sizeof own->cells);
  there =
      address(all, all->part + 1, offsetof(shared_t, left) + (size_t)slot * sizeof(copy_t), &right);
  check(mob_put(right, there, own, sizeof *own));
  status = mob_team_barrier(all->team);
  if (status == MOB_OK) {
    all->saved = all->step;
    all->kept = all->shared;
  }
  return status;
}

static mob_status_t compute(state_t* all) {
  while (all->step < steps) {
    double* const edges = all->shared->edges[all->step % 2];
    const size_t field =
        offsetof(shared_t, edges) + (size_t)(all->step % 2) * sizeof all->shared->edges[0];
    double next[CELLS];
    mob_rank_t number;
    void* there;
    mob_status_t status = all->step % EVERY == 0 ? save(all) : MOB_OK;
    if (status != MOB_OK) return status;
    there = address(all, all->part - 1, field + sizeof(double), &number);
    check(mob_put(number, there, &all->cells[0], sizeof(double)));
    there = address(all, all->part + 1, field, &number);
    check(mob_put(number, there, &all->cells[CELLS - 1], sizeof(double)));
    status = mob_team_barrier(all->team);
    if (status != MOB_OK) return status;
    advance(next, all->cells, edges[0], edges[1], CELLS);
    memcpy(all->cells, next, sizeof next);
    ++all->step;
  }
  return MOB_OK;
}

/* What a member brings when the parts are given out. */
typedef struct {
  long saved;
  mob_rank_t part;
} standing_t;

/* Finds the step from which all can go on: the latest of which all have a copy. A member without
 * one gets its part from the next member; if that has none either, all start over: -1. */
static long common_step(const standing_t* members, const mob_rank_t* holder, mob_rank_t parts) {
  long from = steps + 1;
  mob_rank_t i;
  for (i = 0; i < parts; ++i) {
    const standing_t* const own = &members[holder[i]];
    const standing_t* const right = &members[holder[(i + 1) % parts]];
    if (own->saved < 0 && right->saved < 0) return -1;
    if (own->saved >= 0 && own->saved < from) from = own->saved;
  }
  return from;
}

/* Gives the parts that nobody has to the members that have none. */
static void hand_out(standing_t* members, mob_rank_t* holder, mob_rank_t parts) {
  mob_rank_t next = 0;
  mob_rank_t i;
  for (i = 0; i < parts; ++i) holder[i] = -1;
  for (i = 0; i < parts; ++i) {
    if (members[i].part >= 0) holder[members[i].part] = i;
  }
  for (i = 0; i < parts; ++i) {
    if (members[i].part >= 0) continue;
    while (holder[next] >= 0) ++next;
    holder[next] = i;
    members[i].part = next;
  }
}

/* The cells of a step of which each part has a copy: this process' own, or its right neighbour's.
 * `lacks` says whether this part and the left one have none of their own. */
static mob_status_t restore_cells(state_t* all, long step, int lacks, int left_lacks) {
  const int slot = (int)(step / EVERY % 2);
  mob_status_t status;
  if (left_lacks) {
    mob_rank_t left;
    void* const there = address(all, all->part - 1, offsetof(shared_t, handed), &left);
    const copy_t* const copy = &all->kept->left[slot];
    if (copy->step != step) mob_abort(1, "recovery: a copy is of another step");
    check(mob_put(left, there, copy->cells, sizeof copy->cells));
  }
  status = mob_team_barrier(all->team);
  if (status != MOB_OK) return status;
  memcpy(all->cells, lacks ? all->shared->handed : all->own[slot].cells, sizeof all->cells);
  all->step = step;
  return MOB_OK;
}

/* Makes the memory of a team, gives each member a part, and fills it. */
static mob_status_t restore(state_t* all) {
  const size_t parts = (size_t)all->parts;
  standing_t* const members = malloc(parts * sizeof *members);
  mob_rank_t* const holder = malloc(parts * sizeof *holder); /* ranks in the team, by part */
  standing_t mine;
  mob_status_t status = MOB_OK;
  memset(&mine, 0, sizeof mine);
  mine.saved = all->saved;
  mine.part = all->part;
  if (members == NULL || holder == NULL) mob_abort(1, "recovery: no memory");
  status = mob_team_alloc(all->team, sizeof(shared_t), 0, &all->mem); /* zeros */
  if (status == MOB_OK) status = mob_allgather(all->team, &mine, members, sizeof mine);
  if (status == MOB_OK) {
    long step;
    mob_rank_t i;
    all->shared = mob_mem_local(all->mem);
    hand_out(members, holder, all->parts);
    for (i = 0; i < all->parts; ++i) all->holders[i] = mob_team_number(all->team, holder[i]);
    all->part = members[mob_team_rank(all->team)].part;
    step = common_step(members, holder, all->parts);
    if (all->part == 0) {
      printf("recovery: %d processes, from step %ld\n", (int)all->parts, step < 0 ? 0 : step);
      fflush(stdout);
    }
    if (step < 0) {
      for (i = 0; i < CELLS; ++i) all->cells[i] = initial((long)all->part * CELLS + i);
      all->step = 0;
      all->saved = -1;
    } else {
      const mob_rank_t left = (all->part + all->parts - 1) % all->parts;
      if (all->saved >= 0) all->saved = step;
      status = restore_cells(all, step, all->saved < 0, members[holder[left]].saved < 0);
    }
  }
  free(members);
  free(holder);
  return status;
}

/* Makes a team of as many members as before, with new processes for those that have died. What was
 * made on the old team, and its memory, stays until the job ends: nobody can tell any more who uses
 * it. */
static void recover(state_t* all, char** argv) {
  const char* arguments[2] = {NULL, NULL};
  arguments[0] = argv[1]; /* null if there is none */
  for (;;) {
    mob_team_t survivors;
    mob_bridge_t bridge;
    mob_rank_t lost;
    check(mob_team_shrink(all->team, &survivors));
    all->team = survivors;
    lost = all->parts - mob_team_size(survivors);
    if (lost == 0) return;
    /* Each of these has the same outcome at all survivors; it fails if one more dies meanwhile. */
    if (mob_spawn(survivors, program, arguments, lost, NULL, &bridge) != MOB_OK) continue;
    if (mob_bridge_merge(bridge, 0, &all->team) == MOB_OK) return;
    (void)mob_bridge_disconnect(bridge);
  }
}

/* Whether this part is as in a run of one process. */
static int is_right(const state_t* all) {
  const long count = (long)all->parts * CELLS;
  double* now = malloc((size_t)count * sizeof(double));
  double* next = malloc((size_t)count * sizeof(double));
  long i;
  int same = 1;
  if (now == NULL || next == NULL) mob_abort(1, "recovery: no memory");
  for (i = 0; i < count; ++i) now[i] = initial(i);
  for (i = 0; i < steps; ++i) {
    double* const last = now;
    advance(next, now, now[count - 1], now[0], count);
    now = next;
    next = last;
  }
  for (i = 0; i < CELLS; ++i) same &= now[(size_t)all->part * CELLS + (size_t)i] == all->cells[i];
  free(now);
  free(next);
  return same;
}

int main(int argc, char** argv) {
  static state_t all;
  mob_bridge_t parent;
  uint32_t done = 0;
  if (argc > 1) steps = atol(argv[1]);
  program = argv[0];
  if (mob_init() != MOB_OK) {
    fprintf(stderr, "recovery: %s\n", mob_last_error());
    return 1; /* a replacement: one of the others has died, and they spawn again */
  }
  parent = mob_parent();
  all.team = MOB_TEAM_WORLD;
  if (parent != MOB_BRIDGE_NONE && mob_bridge_merge(parent, 0, &all.team) != MOB_OK) {
    (void)mob_bridge_disconnect(parent); /* one of the others has died: they spawn again */
    return mob_finalize() == MOB_OK ? 0 : 1;
  }
  all.parts = mob_team_size(all.team);
  all.part = parent != MOB_BRIDGE_NONE ? -1 : mob_rank();
  all.saved = -1;
  all.holders = malloc((size_t)all.parts * sizeof *all.holders);
  if (all.holders == NULL) mob_abort(1, "recovery: no memory");
  while (!done) {
    mob_status_t status = restore(&all);
    if (status == MOB_OK) status = compute(&all);
    /* A call may fail at some and succeed at others: all go the same way. */
    done = status == MOB_OK;
    check(mob_team_agree(all.team, &done));
    if (!done) recover(&all, argv);
  }
  if (!is_right(&all)) mob_abort(1, "recovery: the result is wrong");
  if (all.part == 0) printf("recovery: %d parts, %ld steps: right\n", (int)all.parts, steps);
  free(all.holders);
  check(mob_finalize());
  return 0;
}

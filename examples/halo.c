/* SPDX-License-Identifier: BSD-3-Clause */

/* Heat in a square plate: Jacobi's iteration on a grid that is cut into one block per rank. After
 * each step a rank puts the edges of its block into the frames of its neighbours' blocks. Build and
 * run:
 *   mobcc halo.c -o halo && mobius run -n 4 ./halo */

#include <mobius/mobius.h>

#include <stdio.h>
#include <stdlib.h>

enum { kSide = 96, kSteps = 200, kCell = sizeof(double) };

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

/* The places of cells are the same in every rank, so that each rank knows where to put. Two grids
 * are used in turn, each with a frame of one cell around the block; own cells have rows and columns
 * from 1. */
static mob_mem_t memory;
static int grid_rows, grid_columns; /* of a grid, frame included */

static size_t offset_of(int grid, int row, int column) {
  return (size_t)((grid * grid_rows + row) * grid_columns + column) * kCell;
}

static double* own_cell(int grid, int row, int column) {
  return (double*)mob_mem_local(memory) + offset_of(grid, row, column) / kCell;
}

/* First row (or column) of block `i` of `blocks`. */
static int first_of(int i, int blocks) { return kSide * i / blocks; }

static void heat_upper_edge(double* first, int cells) {
  for (int column = 0; column < cells; ++column) first[column] = 1.0;
}

static void step(const double* from, double* to, int rows, int columns, int pitch) {
  for (int row = 0; row < rows; ++row) {
    for (int i = row * pitch; i < row * pitch + columns; ++i) {
      to[i] = 0.25 * (from[i - pitch] + from[i + pitch] + from[i - 1] + from[i + 1]);
    }
  }
}

/* Puts `count` runs of cells, one below the other, from this rank's grid into a neighbour's. */
static void put_cells(mob_rank_t rank, size_t to, size_t from, size_t run_cells, size_t count) {
  const ptrdiff_t stride = (ptrdiff_t)grid_columns * kCell;
  void* remote;
  check(mob_mem_address(memory, rank, to, &remote));
  check(mob_put_strided(rank, remote, &stride, (char*)mob_mem_local(memory) + from, &stride,
                        run_cells * kCell, &count, 1));
}

/* The largest difference between the result of all ranks and that of one process alone. */
static double difference_from_serial(int grid, int down, int across) {
  const int pitch = kSide + 2;
  double* cells[2] = {calloc((size_t)pitch * pitch, kCell), calloc((size_t)pitch * pitch, kCell)};
  double* all = calloc((size_t)kSide * kSide, kCell);
  if (cells[0] == NULL || cells[1] == NULL || all == NULL) mob_abort(1, "no memory");
  for (int i = 0; i < 2; ++i) heat_upper_edge(cells[i], pitch);
  for (int i = 0; i < kSteps; ++i) {
    step(cells[i % 2] + pitch + 1, cells[1 - i % 2] + pitch + 1, kSide, kSide, pitch);
  }
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    const int top = first_of(rank / across, down), left = first_of(rank % across, across);
    const size_t rows = (size_t)(first_of(rank / across + 1, down) - top);
    const size_t columns = (size_t)(first_of(rank % across + 1, across) - left);
    const ptrdiff_t remote_stride = (ptrdiff_t)grid_columns * kCell;
    const ptrdiff_t local_stride = (ptrdiff_t)kSide * kCell;
    void* remote;
    check(mob_mem_address(memory, rank, offset_of(grid, 1, 1), &remote));
    check(mob_get_strided(rank, remote, &remote_stride, all + top * kSide + left, &local_stride,
                          columns * kCell, &rows, 1));
  }
  double largest = 0.0;
  for (int i = 0; i < kSide * kSide; ++i) {
    const double expected = cells[kSteps % 2][(i / kSide + 1) * pitch + i % kSide + 1];
    const double difference = all[i] > expected ? all[i] - expected : expected - all[i];
    if (!(difference <= largest)) largest = difference;
  }
  free(cells[0]), free(cells[1]), free(all);
  return largest;
}

int main(void) {
  if (mob_init()) return fprintf(stderr, "%s\n", mob_last_error()), 1;
  const int size = mob_size(), rank = mob_rank();
  if (size > kSide) mob_abort(1, "more ranks than rows of the grid");
  int down = 1; /* blocks: as square as the number of ranks allows */
  for (int i = 1; i * i <= size; ++i) {
    if (size % i == 0) down = i;
  }
  const int across = size / down, i = rank / across, j = rank % across;
  const int rows = first_of(i + 1, down) - first_of(i, down);
  const int columns = first_of(j + 1, across) - first_of(j, across);
  grid_rows = kSide / down + 3; /* of the largest block */
  grid_columns = kSide / across + 3;

  check(mob_mem_alloc(offset_of(2, 0, 0), &memory)); /* zeros */
  if (i == 0) {
    for (int grid = 0; grid < 2; ++grid) heat_upper_edge(own_cell(grid, 0, 0), columns + 2);
  }
  const struct {
    int exists, rank;
    size_t to, from, run_cells, count; /* offsets in grid 0 */
  } edges[4] = {
      {i > 0, rank - across, offset_of(0, first_of(i, down) - first_of(i - 1, down) + 1, 1),
       offset_of(0, 1, 1), (size_t)columns, 1},
      {i < down - 1, rank + across, offset_of(0, 0, 1), offset_of(0, rows, 1), (size_t)columns, 1},
      {j > 0, rank - 1, offset_of(0, 1, first_of(j, across) - first_of(j - 1, across) + 1),
       offset_of(0, 1, 1), 1, (size_t)rows},
      {j < across - 1, rank + 1, offset_of(0, 1, 0), offset_of(0, 1, columns), 1, (size_t)rows}};

  check(mob_barrier()); /* no rank puts before all have set their frames */
  for (int n = 0; n < kSteps; ++n) {
    const int grid = 1 - n % 2; /* this step computes it from the other one */
    step(own_cell(1 - grid, 1, 1), own_cell(grid, 1, 1), rows, columns, grid_columns);
    for (int e = 0; e < 4; ++e) {
      if (!edges[e].exists) continue;
      put_cells(edges[e].rank, offset_of(grid, 0, 0) + edges[e].to,
                offset_of(grid, 0, 0) + edges[e].from, edges[e].run_cells, edges[e].count);
      check(mob_notify(edges[e].rank)); /* the neighbour sees what was put before */
    }
    /* A neighbour that has notified has also read its frame of the grid computed next. */
    for (int e = 0; e < 4; ++e) {
      if (edges[e].exists) check(mob_notify_wait(edges[e].rank, NULL));
    }
  }
  check(mob_barrier());
  int wrong = 0;
  if (rank == 0) {
    const double difference = difference_from_serial(kSteps % 2, down, across);
    wrong = difference != 0.0;
    printf("halo: %d steps on %d x %d blocks, largest difference from serial %g: %s\n", kSteps,
           down, across, difference, wrong ? "WRONG" : "right");
  }
  check(mob_mem_free(memory));
  check(mob_finalize());
  return wrong;
}

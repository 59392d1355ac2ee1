/* SPDX-License-Identifier: BSD-3-Clause */

#include "layout.h"

#include <stdlib.h>
#include <string.h>

/* As square as the number of processes allows. */
static int rows_of_grid(int processes) {
  int rows = 1;
  for (int i = 1; i * i <= processes; ++i) {
    if (processes % i == 0) rows = i;
  }
  return rows;
}

/* Hosts form a grid, and so do the processes of each; the ranks are ordered by host. */
typedef struct {
  int hosts, host_rows, host_columns;
  int per_host, rows, columns; /* of one host */
} groups_t;

/* Of the grids that are nearest to a square, as a whole, the one in which fewest blocks go to other
 * hosts: a block of L to the processes of its row, a block of U to those of its column. */
static void shape_grids(groups_t* groups) {
  int least_side = 0, least_between = 0;
  for (int host_rows = 1; host_rows <= groups->hosts; ++host_rows) {
    for (int rows = 1; rows <= groups->per_host; ++rows) {
      if (groups->hosts % host_rows != 0 || groups->per_host % rows != 0) continue;
      const int host_columns = groups->hosts / host_rows, columns = groups->per_host / rows;
      const int down = host_rows * rows, across = host_columns * columns;
      const int side = down > across ? down : across, between = down - rows + across - columns;
      if (least_side != 0 &&
          (side > least_side || (side == least_side && between >= least_between))) {
        continue;
      }
      least_side = side;
      least_between = between;
      groups->host_rows = host_rows;
      groups->host_columns = host_columns;
      groups->rows = rows;
      groups->columns = columns;
    }
  }
}

static const char* group_by_host(groups_t* groups, int ranks, const int* leader) {
  groups->hosts = 0;
  for (int rank = 0; rank < ranks; ++rank) groups->hosts += leader[rank] == rank;
  if (ranks % groups->hosts != 0) return "the hosts have different numbers of processes";
  groups->per_host = ranks / groups->hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    int before = 0; /* processes on this host */
    for (int other = 0; other < ranks; ++other) before += leader[other] == leader[rank];
    if (before != groups->per_host) return "the hosts have different numbers of processes";
  }
  shape_grids(groups);
  return NULL;
}

static void place_hosts(layout_t* layout, const groups_t* groups, int ranks, const int* leader) {
  int host = 0;
  for (int first = 0; first < ranks; ++first) {
    if (leader[first] != first) continue;
    int member = 0;
    for (int rank = first; rank < ranks; ++rank) {
      if (leader[rank] != first) continue;
      const int row = host / groups->host_columns * groups->rows + member / groups->columns;
      const int column = host % groups->host_columns * groups->columns + member % groups->columns;
      layout->rank_at[row * layout->grid_columns + column] = rank;
      ++member;
    }
    ++host;
  }
}

/* Deals rows (or columns) of blocks out to rows of the grid, which are `outer` groups of `inner`.
 * The groups take turns until each has as many ranges of blocks as `ranges` says, or fewer if there
 * are not enough; within a range the members take turns. */
static void deal(int blocks, int outer, int inner, int ranges, int* position, int* index,
                 int* count) {
  const int turns = (blocks + inner - 1) / inner; /* of the members, in all ranges */
  const int most = turns < outer ? 1 : turns / outer;
  if (ranges > most) ranges = most;
  memset(count, 0, (size_t)(outer * inner) * sizeof *count);
  for (int i = 0; i < blocks; ++i) {
    const int range = (int)((long)(i / inner) * outer * ranges / turns);
    position[i] = range % outer * inner + i % inner;
    index[i] = count[position[i]]++;
  }
}

static int largest(const int* values, int count) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    if (values[i] > result) result = values[i];
  }
  return result;
}

const char* layout_make(layout_t* layout, int size, int block, placement_t placement, int ranges,
                        int ranks, int own_rank, const int* leader) {
  memset(layout, 0, sizeof *layout);
  layout->size = size;
  layout->block = block < size ? block : size;
  layout->blocks = (size + layout->block - 1) / layout->block;
  groups_t groups = {0};
  if (placement == PLACE_HYBRID) {
    const char* reason = group_by_host(&groups, ranks, leader);
    if (reason != NULL) return reason;
    layout->grid_rows = groups.host_rows * groups.rows;
  } else {
    layout->grid_rows = rows_of_grid(ranks);
  }
  layout->grid_columns = ranks / layout->grid_rows;
  const size_t blocks = (size_t)layout->blocks;
  layout->rank_at = malloc((size_t)ranks * sizeof(int));
  layout->row_of = malloc(blocks * sizeof(int));
  layout->column_of = malloc(blocks * sizeof(int));
  layout->row_index = malloc(blocks * sizeof(int));
  layout->column_index = malloc(blocks * sizeof(int));
  layout->columns_in = malloc((size_t)layout->grid_columns * sizeof(int));
  int* rows_in = malloc((size_t)layout->grid_rows * sizeof(int));
  if (layout->rank_at == NULL || layout->row_of == NULL || layout->column_of == NULL ||
      layout->row_index == NULL || layout->column_index == NULL || layout->columns_in == NULL ||
      rows_in == NULL) {
    free(rows_in);
    return "no memory";
  }
  if (placement == PLACE_HYBRID) {
    place_hosts(layout, &groups, ranks, leader);
  } else {
    for (int i = 0; i < ranks; ++i) layout->rank_at[i] = i;
  }
  const int outer_rows = placement == PLACE_BLOCK    ? layout->grid_rows
                         : placement == PLACE_HYBRID ? groups.host_rows
                                                     : 1;
  const int outer_columns = placement == PLACE_BLOCK    ? layout->grid_columns
                            : placement == PLACE_HYBRID ? groups.host_columns
                                                        : 1;
  if (placement != PLACE_HYBRID) ranges = 1;
  deal(layout->blocks, outer_rows, layout->grid_rows / outer_rows, ranges, layout->row_of,
       layout->row_index, rows_in);
  deal(layout->blocks, outer_columns, layout->grid_columns / outer_columns, ranges,
       layout->column_of, layout->column_index, layout->columns_in);
  layout->slots = (size_t)largest(rows_in, layout->grid_rows) *
                  (size_t)largest(layout->columns_in, layout->grid_columns);
  free(rows_in);
  for (int i = 0; i < ranks; ++i) {
    if (layout->rank_at[i] != own_rank) continue;
    layout->own_row = i / layout->grid_columns;
    layout->own_column = i % layout->grid_columns;
  }
  return NULL;
}

void layout_free(layout_t* layout) {
  free(layout->rank_at);
  free(layout->row_of);
  free(layout->column_of);
  free(layout->row_index);
  free(layout->column_index);
  free(layout->columns_in);
}

int layout_extent(const layout_t* layout, int i) {
  const int rest = layout->size - i * layout->block;
  return rest < layout->block ? rest : layout->block;
}

int layout_owner(const layout_t* layout, int row, int column) {
  return layout->rank_at[layout->row_of[row] * layout->grid_columns + layout->column_of[column]];
}

size_t layout_slot(const layout_t* layout, int row, int column) {
  const int columns = layout->columns_in[layout->column_of[column]];
  const size_t number =
      (size_t)layout->row_index[row] * (size_t)columns + (size_t)layout->column_index[column];
  return number * (size_t)layout->block * (size_t)layout->block;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LU_LAYOUT_H
#define LU_LAYOUT_H

#include <stddef.h>

/* Which process owns which block of the matrix, and where in its array.
 *
 * The processes form a grid. The row of a block in the matrix decides the row of its owner in the
 * grid, its column the column. The blocks of a process lie in its array row by row, each in a slot
 * of block × block doubles. Within a block, elements lie column by column, as BLAS wants them. */

typedef enum {
  PLACE_CYCLIC, /* neighbouring blocks have different owners: work is balanced */
  PLACE_BLOCK,  /* each process owns one rectangle of blocks: neighbours are near */
  PLACE_HYBRID  /* ranges for hosts, and cyclic within each */
} placement_t;

typedef struct {
  int size;   /* rows and columns of the matrix */
  int block;  /* rows and columns of a block; those at the lower and right edge may have fewer */
  int blocks; /* rows and columns of blocks */
  int grid_rows, grid_columns;
  int* rank_at;   /* [grid row × grid_columns + grid column] */
  int* row_of;    /* grid row of a row of blocks */
  int* column_of; /* grid column of a column of blocks */
  int* row_index; /* number of a row of blocks among those with the same grid row */
  int* column_index;
  int* columns_in;         /* columns of blocks in each grid column */
  size_t slots;            /* that the process with most blocks has */
  int own_row, own_column; /* of the calling process in the grid */
} layout_t;

/**
 * @param ranges  of rows and of columns that each host has, for PLACE_HYBRID
 * @param leader  lowest rank on the host of each rank, for PLACE_HYBRID
 * @return NULL, or why there is no such layout
 */
const char* layout_make(layout_t* layout, int size, int block, placement_t placement, int ranges,
                        int ranks, int own_rank, const int* leader);
void layout_free(layout_t* layout);

/** Rows of the blocks in row `i` of blocks, or columns of those in column `i`. */
int layout_extent(const layout_t* layout, int i);
int layout_owner(const layout_t* layout, int row, int column);
/** First double of a block's slot in the array of its owner. */
size_t layout_slot(const layout_t* layout, int row, int column);

#endif

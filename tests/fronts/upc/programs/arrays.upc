/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays of every layout: where elements are, sizes, initial values. */
#include "check.h"

#define ROW 6

shared int cyclic[10 * THREADS];
shared [3] short blocked[7 * THREADS];
shared [] long indefinite[9];
shared [*] double even[5 * THREADS];
shared [ROW] int matrix[2 * THREADS][ROW];
shared [ROW / 2] char halves[THREADS][ROW];
shared int columns[3][THREADS];
shared int scalar = 41;
shared [2] int first[2 * THREADS] = {11, 12};
shared [] double constants[4] = {0.5, 1.5, 2.5};
static shared unsigned char bytes[THREADS];
strict shared int flag;
shared _Bool truth[THREADS];
shared float _Complex wave[THREADS];
typedef shared [4] char row_type[9 * THREADS];
shared int ready[THREADS];
shared [3] int row[THREADS][3];
enum color { RED, GREEN = 5, BLUE };
shared enum color colors[THREADS];
shared long double wide[THREADS];

static void fill(void) {
  int i, j;
  for (i = MYTHREAD; i < 10 * THREADS; i += THREADS) cyclic[i] = 3 * i;
  if (MYTHREAD == THREADS - 1) {
    for (i = 0; i < 7 * THREADS; i++) blocked[i] = (short)(i - 5);
    for (i = 0; i < 9; i++) indefinite[i] = 1L << (4 * i);
    for (i = 0; i < 5 * THREADS; i++) even[i] = i / 2.0;
  }
  if (MYTHREAD == 0) {
    for (i = 0; i < 2 * THREADS; i++)
      for (j = 0; j < ROW; j++) matrix[i][j] = 100 * i + j;
    for (i = 0; i < THREADS; i++)
      for (j = 0; j < ROW; j++) halves[i][j] = (char)(i + j);
    for (i = 0; i < 3; i++)
      for (j = 0; j < THREADS; j++) columns[i][j] = 10 * j + i;
  }
  bytes[MYTHREAD] = (unsigned char)(200 + MYTHREAD);
  truth[MYTHREAD] = MYTHREAD & 1;
  wave[MYTHREAD] = MYTHREAD + 2.0f * __extension__ 1.0if;
  colors[MYTHREAD] = MYTHREAD == 0 ? GREEN : BLUE;
  wide[MYTHREAD] = 1.25L * MYTHREAD;
}

static void look(void) {
  int i, j;
  for (i = 0; i < 10 * THREADS; i++) {
    CHECK(cyclic[i] == 3 * i);
    CHECK((int)upc_threadof(&cyclic[i]) == i % THREADS);
  }
  for (i = 0; i < 7 * THREADS; i++) {
    CHECK(blocked[i] == i - 5);
    CHECK((int)upc_threadof(&blocked[i]) == i / 3 % THREADS);
    CHECK((int)upc_phaseof(&blocked[i]) == i % 3);
  }
  for (i = 0; i < 9; i++) {
    CHECK(indefinite[i] == 1L << (4 * i));
    CHECK(upc_threadof(&indefinite[i]) == 0);
  }
  for (i = 0; i < 5 * THREADS; i++) {
    CHECK(even[i] == i / 2.0);
    CHECK((int)upc_threadof(&even[i]) == i / 5);
  }
  for (i = 0; i < 2 * THREADS; i++)
    for (j = 0; j < ROW; j++) {
      CHECK(matrix[i][j] == 100 * i + j);
      CHECK((int)upc_threadof(&matrix[i][j]) == i % THREADS);
    }
  for (i = 0; i < THREADS; i++)
    for (j = 0; j < ROW; j++) {
      CHECK(halves[i][j] == i + j);
      CHECK((int)upc_threadof(&halves[i][j]) == (i * ROW + j) / 3 % THREADS);
    }
  for (i = 0; i < 3; i++)
    for (j = 0; j < THREADS; j++) {
      CHECK(columns[i][j] == 10 * j + i);
      CHECK((int)upc_threadof(&columns[i][j]) == j);
    }
  for (i = 0; i < THREADS; i++) {
    CHECK(bytes[i] == (200 + i) % 256);
    CHECK(truth[i] == (i & 1));
    CHECK(wave[i] == i + 2.0f * __extension__ 1.0if);
    CHECK(colors[i] == (i == 0 ? GREEN : BLUE));
    CHECK(wide[i] == 1.25L * i);
  }
}

static void sizes(void) {
  CHECK(sizeof cyclic == 10 * THREADS * sizeof(int));
  CHECK(sizeof(matrix[0]) == ROW * sizeof(int));
  CHECK(upc_elemsizeof(matrix) == sizeof(int));
  CHECK(upc_blocksizeof(blocked) == 3);
  CHECK(upc_blocksizeof(indefinite) == 0);
  CHECK(upc_blocksizeof(even) == 5);
  CHECK(upc_blocksizeof(row_type) == 4 && upc_localsizeof(row_type) == 12);
  CHECK(upc_localsizeof(even) == 5 * sizeof(double));
  CHECK(upc_localsizeof(shared [4] char[7 * THREADS]) == 8);
  CHECK(sizeof(shared [5] int[10]) == 10 * sizeof(int));
  CHECK(sizeof(shared int *) == sizeof(shared [] char *));
}

static void values(void) {
  int i;
  CHECK(scalar == 41);
  CHECK(first[0] == 11 && first[1] == 12);
  for (i = 2; i < 2 * THREADS; i++) CHECK(first[i] == 0);
  CHECK(constants[0] == 0.5 && constants[2] == 2.5 && constants[3] == 0);
}

static void updates(void) {
  int old;
  upc_barrier;
  if (MYTHREAD == THREADS - 1) {
    old = cyclic[1]++;
    CHECK(old == cyclic[1] - 1);
    CHECK(++cyclic[1] == old + 2);
    cyclic[1] -= 2;
    CHECK((cyclic[2] = 77) == 77 && cyclic[2] == 77);
    cyclic[2] = 6;
    even[4] *= 3;
    CHECK(even[4] == 6.0);
    even[4] /= 3;
    blocked[3] <<= 2;
    CHECK(blocked[3] == -8);
    blocked[3] = -2;
    CHECK((old = (int)indefinite[1], indefinite[2]) == 256 && old == 16);
  }
  upc_barrier 7;
}

static void waits(void) {
  int i;
  upc_barrier;
  if (MYTHREAD == 0) {
    scalar = 99;
    flag = 1;
  }
  while (flag == 0) continue;
  CHECK(scalar == 99);
  upc_barrier;
  if (MYTHREAD == 0)
    for (i = 0; i < THREADS; i++) ready[i] = row[i][1] = i + 1;
  while (ready[MYTHREAD] == 0) continue; /* its own element, written by another thread */
  while (row[MYTHREAD][1] == 0) continue;
  CHECK(ready[MYTHREAD] + row[MYTHREAD][1] == 2 * MYTHREAD + 2);
}

int main(void) {
  values();
  fill();
  upc_barrier;
  look();
  sizes();
  updates();
  look();
  waits();
  DONE();
}

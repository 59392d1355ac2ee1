/* SPDX-License-Identifier: BSD-3-Clause
 * Pointers to shared: arithmetic, comparison, conversion, allocation, pointers in shared memory. */
#include "check.h"

#define SIZE 24

shared int cyclic[SIZE * THREADS];
shared [4] int blocked[SIZE * THREADS];
shared [] int indefinite[SIZE];
shared int *start = &cyclic[2];
shared [4] int *const fixed = blocked;
shared [4] int *table[2] = {blocked, &blocked[5]};
shared int *shared published[THREADS];
shared [] int *shared [4] areas[4 * THREADS];

typedef shared [4] int *block_pointer;

static shared int *behind(shared int *p) { return p + 1; }
static int sum(shared [4] const int *p, int count) {
  int total = 0;
  while (count-- > 0) total += *p++;
  return total;
}
static int old_style(p, count) shared [4] int *p;
int count;
{
  return p[count];
}
static size_t where(shared void *p) { return upc_threadof(p); }

static void arithmetic(void) {
  int i;
  shared int *p = cyclic, *q;
  block_pointer b = blocked, e = blocked + SIZE;
  for (i = 0; i < SIZE; i++, p++) {
    CHECK(p == &cyclic[i] && p - cyclic == i && where(p) == (size_t)(i % THREADS));
    CHECK(*p == cyclic[i]);
  }
  for (i = 0; b < e; b += 3, i += 3) {
    CHECK(b == blocked + i && upc_phaseof(b) == (size_t)(i % 4));
    CHECK(*b == i && b[1] == i + 1 && e - b == SIZE - i);
  }
  q = p - SIZE;
  CHECK(q == cyclic && q <= p && q < p && !(q > p) && p >= q && q != p);
  CHECK(behind(q) - q == 1);
  q += 5;
  q -= 2;
  CHECK(q-- == cyclic + 3 && --q == cyclic + 1 && 1 + q == &cyclic[2]);
  CHECK(sum(blocked, 8) == 28);
  CHECK(fixed == table[0] && old_style(fixed, 7) == 7);
  CHECK(start == cyclic + 2 && *start == 2 && table[1] - table[0] == 5 && *table[1] == 5);
  for (i = 0; i < SIZE; i++) CHECK((indefinite + i)[0] == 10 * i);
}

static void conversions(void) {
  shared void *any = &blocked[6];
  shared [4] int *back = any;
  shared [] int *same = (shared [] int *)&cyclic[MYTHREAD];
  int *mine = (int *)&cyclic[MYTHREAD];
  shared int *none = NULL, *zero = 0;
  CHECK(back == &blocked[6] && upc_phaseof(back) == 2 && *back == 6);
  CHECK(upc_phaseof(upc_resetphase(back)) == 0);
  CHECK(any == (shared void *)back && any != NULL && !none && none == zero && !(none != NULL));
  CHECK((none ? 1 : 2) == 2 && (any && !zero));
  CHECK(*same == MYTHREAD && *mine == MYTHREAD);
  upc_barrier;
  mine[1] = -5; /* the next of this thread's own elements */
  CHECK(cyclic[MYTHREAD + THREADS] == -5);
  mine[1] = MYTHREAD + THREADS;
  CHECK((int *)none == NULL && (shared int *)any != NULL);
  CHECK((back = any, back + 1) == blocked + 7);
  upc_barrier;
}

static void allocation(void) {
  shared [8] double *all = upc_all_alloc(THREADS, 8 * sizeof(double));
  shared [] int *own = upc_alloc(4 * sizeof(int));
  shared [] int *right;
  int i, local[4], next = (MYTHREAD + 1) % THREADS;
  CHECK(all != NULL && own != NULL && where(own) == (size_t)MYTHREAD);
  upc_forall (i = 0; i < 8 * THREADS; i++; &all[i]) all[i] = i / 4.0;
  for (i = 0; i < 4; i++) own[i] = 10 * MYTHREAD + i;
  areas[4 * MYTHREAD + 1] = own;
  published[MYTHREAD] = &cyclic[MYTHREAD];
  upc_barrier;
  for (i = 0; i < 8 * THREADS; i++) CHECK(all[i] == i / 4.0);
  right = areas[4 * next + 1];
  CHECK(where(right) == (size_t)next && right[3] == 10 * next + 3);
  CHECK(areas[4 * next + 1][2] == 10 * next + 2 && *published[next] == next);
  upc_memget(local, right, sizeof local);
  CHECK(local[0] == 10 * next && local[3] == 10 * next + 3);
  upc_barrier;
  upc_free(own);
  upc_all_free(all);
}

static void rows(void) {
  shared [4] int (*row)[4] = (shared [4] int (*)[4])blocked;
  row++;
  CHECK((*row)[2] == 6 && row[1][3] == 11 && row == (shared [4] int (*)[4])&blocked[4]);
}

/* Private static variables whose first values code computes from shared objects before main. */
static shared int firsts[10 * THREADS] = {4, 5, 6, 7};
static shared int *second_of(shared int *p) { return p + 2; }
static shared int *computed = second_of(firsts);
static int fourth = firsts[3];
static long between = &firsts[5] - firsts;

static void first_values(void) {
  static int in_function = firsts[2] + 1;
  CHECK(computed == firsts + 2 && fourth == 7 && between == 5 && in_function == 7);
}

int main(int argc, char **argv) {
  int i;
  first_values();
  CHECK(argc == 1 && argv[0] != NULL);
  upc_forall (i = 0; i < SIZE * THREADS; i++; &cyclic[i]) cyclic[i] = i;
  upc_forall (i = 0; i < SIZE * THREADS; i++; &blocked[i]) blocked[i] = i;
  upc_forall (i = 0; i < SIZE; i++; &indefinite[i]) indefinite[i] = 10 * i;
  upc_barrier;
  arithmetic();
  conversions();
  allocation();
  rows();
  DONE();
  return 0;
}

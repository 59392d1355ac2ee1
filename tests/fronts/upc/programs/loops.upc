/* SPDX-License-Identifier: BSD-3-Clause
 * upc_forall with each form of affinity: every iteration once, on the right thread. */
#include "check.h"

#define COUNT (13 * THREADS)
#define ROW 5

shared int owner[COUNT], times[COUNT];
shared [4] int blocked[COUNT], blocked_times[COUNT];
shared [ROW] int rows[2 * THREADS][ROW];
shared [2 * ROW] int pairs[4 * THREADS][ROW];
shared int *pointer;
int limit = 0;

static void reset(void) {
  int i;
  upc_barrier;
  upc_forall (i = 0; i < COUNT; i++; &times[i]) times[i] = 0;
  upc_forall (i = 0; i < COUNT; i++; &blocked_times[i]) blocked_times[i] = 0;
  upc_barrier;
}

static void expect(int first, int last) {
  int i;
  upc_barrier;
  for (i = 0; i < COUNT; i++) CHECK(times[i] == (i >= first && i < last));
  upc_barrier;
}

static void integers(void) {
  int i;
  double half = COUNT - 0.5;
  reset();
  upc_forall (i = 0; i < COUNT; i++; i) {
    times[i]++;
    CHECK(MYTHREAD == i % THREADS);
  }
  CHECK(i == COUNT);
  expect(0, COUNT);
  reset();
  upc_forall (int k = 3; k <= 9 && k < COUNT; k++; k) times[k]++;
  expect(3, COUNT < 10 ? COUNT : 10);
  reset();
  upc_forall (i = 2; i < COUNT - 1; ++i; i + 1) {
    CHECK(MYTHREAD == (i + 1) % THREADS);
    times[i]++;
  }
  CHECK(i == COUNT - 1);
  expect(2, COUNT - 1);
  reset();
  upc_forall (i = COUNT - 1; i >= 0; i--; 2 * i) {
    CHECK(MYTHREAD == 2 * i % THREADS);
    times[i]++;
  }
  expect(0, COUNT);
  reset();
  upc_forall (i = 0; i < limit; i++; i) times[i]++;
  CHECK(i == 0);
  expect(0, 0);
  upc_forall (i = 0; i < half; i++; i) times[i]++; /* the bound is no integer */
  CHECK(i == COUNT);
  expect(0, COUNT);
  reset();
  upc_forall (i = 0; i < COUNT - i; i++; i) times[i]++; /* the bound counts with the loop */
  CHECK(i == (COUNT + 1) / 2);
  expect(0, (COUNT + 1) / 2);
}

static void elements(void) {
  int i, j;
  upc_forall (i = 0; i < COUNT; i++; &blocked[i]) {
    CHECK(MYTHREAD == i / 4 % THREADS);
    if (i % 3 == 0) continue;
    blocked[i] = i;
    blocked_times[i] += 1;
  }
  CHECK(i == COUNT);
  upc_barrier;
  for (i = 0; i < COUNT; i++) {
    CHECK(blocked_times[i] == (i % 3 != 0));
    CHECK(blocked[i] == (i % 3 != 0 ? i : 0));
  }
  upc_barrier;
  upc_forall (i = 6; i < COUNT - 2; i++; &blocked[i + 2]) {
    CHECK(MYTHREAD == (i + 2) / 4 % THREADS);
    blocked[i + 2] = -i;
  }
  upc_barrier;
  for (i = 6; i < COUNT - 2; i++) CHECK(blocked[i + 2] == -i);
  upc_forall (i = 0; i < 2 * THREADS; i++; &rows[i][0])
    for (j = 0; j < ROW; j++) {
      CHECK(upc_threadof(&rows[i][j]) == (size_t)MYTHREAD);
      rows[i][j] = 10 * i + j;
    }
  upc_forall (i = 0; i < 4 * THREADS; i++; pairs[i])
    for (j = 0; j < ROW; j++) pairs[i][j] = 10 * i - j;
  upc_barrier;
  for (i = 0; i < 2 * THREADS; i++)
    for (j = 0; j < ROW; j++) CHECK(rows[i][j] == 10 * i + j);
  for (i = 0; i < 4 * THREADS; i++)
    for (j = 0; j < ROW; j++) CHECK(pairs[i][j] == 10 * i - j);
}

static void pointers(void) {
  int i;
  reset();
  pointer = times;
  upc_forall (i = 0; i < COUNT; i++; pointer + i) {
    CHECK(upc_threadof(pointer + i) == (size_t)MYTHREAD);
    ++pointer[i];
  }
  expect(0, COUNT);
  reset();
  upc_forall (shared int *p = times; p < times + COUNT; p++; p) *p += 1;
  expect(0, COUNT);
  reset();
  upc_forall (i = 0; i < COUNT; i++; i) {
    shared int *inner = times + THREADS; /* of the body alone */
    if (i < COUNT - THREADS) inner[i]++;
  }
  expect(THREADS, COUNT);
}

static void shifted_pointers(shared int *p, shared [4] int *b, int count) {
  shared [4] int *q = blocked_times, *r = b - 3;
  int i;
  upc_barrier;
  upc_forall (i = 0; i < count; i++; &p[i]) {
    CHECK(upc_threadof(p + i) == (size_t)MYTHREAD);
    p[i] = 2 * i; /* as `owner[i + 3]`, which starts elsewhere */
    owner[i] = -i;
  }
  upc_barrier;
  for (i = 0; i < count; i++) CHECK(times[i + 3] == 2 * i && owner[i] == -i);
  upc_barrier;
  upc_forall (i = 0; i < count; i++; &b[i]) {
    CHECK(upc_threadof(&b[i]) == (size_t)MYTHREAD);
    b[i] = 3 * i;
    q[i] = r[i + 3];
  }
  CHECK(i == count);
  upc_barrier;
  for (i = 0; i < count; i++) CHECK(blocked[i + 6] == 3 * i && q[i] == 3 * i);
  upc_barrier;
  upc_forall (i = 1; i < count; i++; b + i) b[i] += q[i];
  upc_barrier;
  for (i = 1; i < count; i++) CHECK(blocked[i + 6] == 6 * i);
  upc_forall (i = 0; i < count; i++; i) p[i] = owner[i]; /* p starts elsewhere */
  upc_barrier;
  for (i = 0; i < count; i++) CHECK(times[i + 3] == -i);
  upc_barrier;
}

static void everywhere(void) {
  int i, count = 0;
  upc_forall (i = 0; i < 10; i++; continue) count++;
  upc_forall (i = 0; i < 10; i++;) count++;
  CHECK(count == 20);
}

static int inner(void) {
  int i, count = 0;
  upc_forall (i = 0; i < 10; i++; i) count++;
  return count;
}

static void nested(void) {
  int i, j, count = 0;
  upc_forall (i = 0; i < THREADS; i++; i) {
    upc_forall (j = 0; j < 10; j++; j) count++;
    CHECK(inner() == 10);
  }
  CHECK(count == 10);
  for (i = 0, count = 0; i < THREADS; i++) count += (10 + THREADS - 1 - MYTHREAD) / THREADS;
  CHECK(inner() * THREADS == count);
  if (count < 0)
    upc_forall (i = 0; i < 3; i++; i) count++;
  else
    count = -1;
  CHECK(count == -1);
}

static void changing(void) {
  int i, step = 0;
  reset();
  upc_forall (i = 0; i < COUNT; i += 2; i) {
    CHECK(MYTHREAD == i % THREADS);
    times[i] = 1;
  }
  upc_barrier;
  for (i = 0; i < COUNT; i++) CHECK(times[i] == (i % 2 == 0));
  upc_forall (i = 0; i < COUNT; i++; i) {
    if (step++ == 0) i += 0;
  }
  CHECK(i == COUNT);
}

int main(void) {
  integers();
  elements();
  pointers();
  shifted_pointers(times + 3, &blocked[6], COUNT - 6);
  everywhere();
  nested();
  changing();
  DONE();
  return 0;
}

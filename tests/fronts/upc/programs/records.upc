/* SPDX-License-Identifier: BSD-3-Clause
 * Structures, unions and bit fields in shared memory; lists through pointers to shared. */
#include "check.h"

struct point {
  double x, y;
  int tags[3];
};
typedef struct node {
  shared struct node *next;
  int value;
  struct point at;
  union {
    int whole;
    char parts[4];
  };
} node_t;
struct packed {
  unsigned low : 3;
  int middle : 7;
  unsigned long high : 40;
};

shared struct point points[2 * THREADS];
shared [2] struct point pairs[4 * THREADS];
shared node_t head;
shared struct packed bits[THREADS];
shared struct {
  int a, b;
} unnamed;
shared struct {
  enum { FIRST, SECOND } which;
  struct {
    short a, b;
  } inner[2];
  struct {
    int direct;
  };
} deep[THREADS];
shared union {
  float f;
  unsigned u;
} either;
struct holder {
  shared int *p, *q;
  shared [] char *text;
  int count;
} holder = {NULL, 0, NULL, 3};

static void members(void) {
  struct point mine = {1.5, -2.5, {7, 8, 9}}, copy;
  shared struct point *p = &points[MYTHREAD];
  shared [] int *tag;
  points[MYTHREAD] = mine;
  p->y = MYTHREAD;
  p->tags[1] += 100;
  upc_barrier;
  p = points + (MYTHREAD + 1) % THREADS;
  copy = *p;
  CHECK(copy.x == 1.5 && copy.y == (MYTHREAD + 1) % THREADS && copy.tags[1] == 108);
  CHECK(p->tags[2] == 9 && (*p).tags[0] == 7 && points[0].tags[1] == 108);
  tag = &p->tags[1];
  CHECK(upc_blocksizeof(*tag) == 0 && upc_blocksizeof(p->x) == 0 && upc_blocksizeof(*p) == 1);
  CHECK(upc_blocksizeof(*(&p->y)) == 0 && upc_elemsizeof(p->tags) == sizeof(int));
  CHECK(*tag == 108 && tag[1] == 9 && upc_threadof(tag) == upc_threadof(p));
  upc_barrier;
  if (MYTHREAD == 0) pairs[3] = points[0];
  upc_barrier;
  CHECK(pairs[3].tags[0] == 7 && pairs[3].x == 1.5);
  CHECK(sizeof(points[0]) == sizeof(struct point) && sizeof p->tags == 3 * sizeof(int));
}

static void lists(void) {
  shared node_t *n = upc_alloc(sizeof(node_t));
  int count = 0;
  if (MYTHREAD == 0) {
    n->next = NULL;
    n->value = 5;
    n->at.tags[2] = 6;
    n->whole = 0x01020304;
    head.next = n;
    head.value = 4;
  }
  upc_barrier;
  for (n = &head; n != NULL; n = n->next) count += n->value;
  CHECK(count == 9);
  CHECK(head.next->at.tags[2] == 6 && head.next->parts[0] + head.next->parts[3] == 5);
}

static void fields(void) {
  unsigned wide = 13;
  shared struct packed *b = &bits[(MYTHREAD + 1) % THREADS];
  b->low = 5;
  b->middle = -3;
  b->high = 0x123456789aUL;
  CHECK((b->low = wide) == 5 && (b->middle = 100 - 13 + wide) == -28); /* what the field holds */
  b->middle = -3;
  CHECK((b->low += 8) == 5 && ++b->low == 6 && b->low++ == 6 && --b->low == 6);
  b->middle -= 20;
  upc_barrier;
  CHECK(bits[MYTHREAD].low == 6 && bits[MYTHREAD].middle == -23);
  CHECK(bits[MYTHREAD].high == 0x123456789aUL);
  if (MYTHREAD == 0) {
    unnamed.a = 1;
    unnamed.b = unnamed.a + 1;
    either.f = 1.0f;
  }
  upc_barrier;
  CHECK(unnamed.b == 2 && either.u == 0x3f800000);
}

static void nested_records(void) {
  deep[MYTHREAD].which = SECOND;
  deep[MYTHREAD].inner[1].b = -2;
  deep[MYTHREAD].inner[0] = deep[MYTHREAD].inner[1];
  deep[MYTHREAD].direct = 9;
  upc_barrier;
  CHECK(deep[0].which == SECOND && deep[0].inner[0].b == -2 && deep[0].direct == 9);
}

static void private_records(void) {
  static shared int cells[THREADS];
  static shared int *remembered = &cells[0];
  struct holder local = {&cells[MYTHREAD], .count = 2}, *through = &local;
  struct holder all[2] = {{0}, {.q = cells}};
  shared int *list[THREADS];
  *local.p = 3;
  through->q = local.p;
  *through->q += 1;
  CHECK(cells[MYTHREAD] == 4 && local.q == through->p && holder.p == NULL && holder.count == 3);
  CHECK(all[1].q == remembered && all[0].q == NULL);
  list[MYTHREAD] = through->q++;
  CHECK(list[MYTHREAD] == &cells[MYTHREAD] && through->q - local.p == 1);
  CHECK(((struct holder){.p = cells}).p == remembered);
}

/* Each part of a complex number is an object that can be assigned to. */
static shared double _Complex number;
static shared struct {
  int before;
  float _Complex inner;
} numbers[THREADS];

static void complex_parts(void) {
  const int next = (MYTHREAD + 1) % THREADS;
  if (MYTHREAD == 0) {
    number = 1.0;
    __imag__ number = 2;
    __real__ number += 4;
    __imag__ number *= 3;
  }
  numbers[next].before = 5;
  __imag__ numbers[next].inner = next;
  __real__ numbers[next].inner = -1;
  upc_barrier;
  CHECK(__real__ number == 5 && __imag__ number == 6);
  CHECK(numbers[MYTHREAD].before == 5 && __real__ numbers[MYTHREAD].inner == -1);
  CHECK(__imag__ numbers[MYTHREAD].inner == MYTHREAD);
}

/* Pointers to functions in shared memory. */
static int twice(int x) { return 2 * x; }
static int (*shared single)(int);
static int (*shared several[THREADS])(int), (*after)(int);
static shared struct {
  int (*call)(int);
} calls[THREADS];

static void functions(void) {
  several[MYTHREAD] = twice;
  calls[MYTHREAD].call = &twice;
  after = several[MYTHREAD];
  if (MYTHREAD == 0) {
    single = twice;
    CHECK(single(2) == 4 && (*single)(3) == 6);
  }
  CHECK(several[MYTHREAD](4) == 8 && after(5) == 10 && calls[MYTHREAD].call(6) == 12);
  upc_barrier;
}

int main(void) {
  complex_parts();
  functions();
  members();
  lists();
  fields();
  nested_records();
  private_records();
  DONE();
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls, against the definitions of the specification. */
#include <upc.h>
#include <upc_collective.h>
#include <upc_tick.h>

#include "upc_tests.h"

static uint64_t result;
static const mob_upc_object_t objects[] = {
    {"result", &result, 16, 1, 1, MOB_UPC_TIMES_THREADS, 16, NULL, 0, HERE},
};
REGISTER(objects, NULL)

static const upc_flag_t sync_modes[] = {
    0,
    UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC,
    UPC_IN_MYSYNC | UPC_OUT_MYSYNC,
    UPC_OUT_MYSYNC,
    UPC_IN_MYSYNC,
};

/* Byte i of block `block` of thread `thread`'s data. */
static char value(int thread, size_t block, size_t i) {
  return (char)(thread * 31 + (int)block * 7 + (int)(i % 101));
}

static void moves(size_t bytes, upc_flag_t flags) {
  const size_t all = (size_t)THREADS;
  const uint32_t root = (uint32_t)(THREADS - 1);
  mob_upc_ptr_t src = upc_all_alloc(all, bytes * all);
  mob_upc_ptr_t dst = upc_all_alloc(all, bytes * all);
  mob_upc_ptr_t perm = upc_all_alloc(all, sizeof(int));
  char* from = mob_upc_local(src.offset);
  char* to = mob_upc_local(dst.offset);
  size_t block, i;
  for (block = 0; block < all; ++block) {
    for (i = 0; i < bytes; ++i) from[block * bytes + i] = value(MYTHREAD, block, i);
  }
  *(int*)mob_upc_local(perm.offset) = (MYTHREAD + 1) % THREADS;
  if ((flags & UPC_IN_MYSYNC) != 0) mob_upc_barrier(HERE);
#define EACH(expected, blocks)                                              \
  if ((flags & UPC_OUT_MYSYNC) != 0) mob_upc_barrier(HERE);                 \
  for (block = 0; block < (blocks); ++block) {                              \
    for (i = 0; i < bytes; ++i) CHECK(to[block * bytes + i] == (expected)); \
  }                                                                         \
  mob_upc_barrier(HERE);                                                    \
  memset(to, 0, bytes* all);                                                \
  mob_upc_barrier(HERE);

  upc_all_broadcast(dst, mob_upc_pointer(src.offset + bytes, root, 0), THREADS > 1 ? bytes : 0,
                    flags);
  if (THREADS > 1) {
    EACH(value((int)root, 1, i), 1)
  }
  upc_all_scatter(dst, mob_upc_pointer(src.offset, root, 0), bytes, flags);
  EACH(value((int)root, (size_t)MYTHREAD, i), 1)
  upc_all_gather(mob_upc_pointer(dst.offset, root, 0), src, bytes, flags);
  EACH((uint32_t)MYTHREAD == root ? value((int)block, 0, i) : 0, all)
  upc_all_gather_all(dst, src, bytes, flags);
  EACH(value((int)block, 0, i), all)
  upc_all_exchange(dst, src, bytes, flags);
  EACH(value((int)block, (size_t)MYTHREAD, i), all)
  upc_all_permute(dst, src, perm, bytes, flags);
  EACH(value((MYTHREAD + THREADS - 1) % THREADS, 0, i), 1)
  upc_all_free(src);
  upc_all_free(dst);
  upc_all_free(perm);
}

static mob_upc_ptr_t element(mob_upc_ptr_t start, int64_t i, size_t bytes, size_t block) {
  return block == 0 ? mob_upc_add_indefinite(start, i, bytes)
                    : mob_upc_add_blocked(start, i, bytes, block);
}

/* A product of functions: not commutative, associative. */
static int second(int a, int b) { return a == 0 ? b : b == 0 ? a : a / 100 * 100 + b % 100; }
static int larger(int a, int b) { return a > b ? a : b; }

static void layouts(void) {
  static const size_t blocks[] = {0, 1, 2, 3, 10, 1000};
  static const size_t counts[] = {1, 2, 7, 40};
  size_t b, c;
  mob_upc_ptr_t src = upc_all_alloc((size_t)THREADS, 2000 * sizeof(int));
  mob_upc_ptr_t dst = upc_all_alloc((size_t)THREADS, 2000 * sizeof(int));
  for (b = 0; b < COUNT(blocks); ++b) {
    for (c = 0; c < COUNT(counts); ++c) {
      const int64_t n = (int64_t)counts[c];
      const size_t block = blocks[b];
      /* From another thread, and from the middle of a block. */
      mob_upc_ptr_t start = mob_upc_pointer(src.offset, (uint32_t)(c % (size_t)THREADS), 0);
      mob_upc_ptr_t target = mob_upc_pointer(dst.offset, (uint32_t)(c / 2 % (size_t)THREADS), 0);
      mob_upc_ptr_t one = mob_upc_pointer(result, (uint32_t)(b % (size_t)THREADS), 0);
      int64_t i;
      int sum = 0, order = 0;
      if (block > 1) start = element(start, 1, sizeof(int), block);
      for (i = 0; i < n; ++i) {
        const int x = (int)(i * 37 % 89 + 101 * (i + 1));
        if (mob_upc_is_mine(element(start, i, sizeof(int), block))) {
          mob_upc_put_int(element(start, i, sizeof(int), block), x);
        }
        sum += x;
        order = second(order, x);
      }
      upc_all_reduceI(one, start, UPC_ADD, counts[c], block, NULL, 0);
      CHECK(mob_upc_get_int(one) == sum);
      upc_all_reduceI(one, start, UPC_NONCOMM_FUNC, counts[c], block, second, 0);
      CHECK(mob_upc_get_int(one) == order);
      upc_all_prefix_reduceI(target, start, UPC_NONCOMM_FUNC, counts[c], block, second, 0);
      order = 0;
      for (i = 0; i < n; ++i) {
        order = second(order, mob_upc_get_int(element(start, i, sizeof(int), block)));
        CHECK(mob_upc_get_int(element(target, i, sizeof(int), block)) == order);
      }
      mob_upc_barrier(HERE);
    }
  }
  upc_all_free(src);
  upc_all_free(dst);
}

/* Every type with every operation that it has. Small values, so that all types hold the results. */
#define OPERATIONS(suffix, T, is_integer)                                                     \
  do {                                                                                        \
    static const upc_op_t ops[] = {UPC_ADD,   UPC_MULT, UPC_MIN, UPC_MAX, UPC_LOGAND,         \
                                   UPC_LOGOR, UPC_AND,  UPC_OR,  UPC_XOR};                    \
    const int count = (is_integer) ? 9 : 6;                                                   \
    int o;                                                                                    \
    mob_upc_put_bytes(mine, &(T){(T)(MYTHREAD % 3 + 1)}, sizeof(T));                          \
    for (o = 0; o < count; ++o) {                                                             \
      int t, e = 1;                                                                           \
      T got;                                                                                  \
      for (t = 1; t < THREADS; ++t) e = expected(ops[o], e, t % 3 + 1);                       \
      if (THREADS == 1 && (ops[o] == UPC_LOGAND || ops[o] == UPC_LOGOR)) e = 1;               \
      bupc_all_reduce_all##suffix(to, from, ops[o], (size_t)THREADS, 1, NULL, 0);             \
      mob_upc_get_bytes(&got, mob_upc_pointer(to.offset, (uint32_t)MYTHREAD, 0), sizeof got); \
      CHECK(got == (T)e);                                                                     \
      upc_all_reduce##suffix(one, from, ops[o], (size_t)THREADS, 1, NULL,                     \
                             UPC_IN_NOSYNC | UPC_OUT_ALLSYNC);                                \
      mob_upc_get_bytes(&got, one, sizeof got);                                               \
      CHECK(got == (T)e);                                                                     \
    }                                                                                         \
    upc_all_prefix_reduce##suffix(to, from, UPC_ADD, (size_t)THREADS, 1, NULL, 0);            \
    {                                                                                         \
      int t, e = 0;                                                                           \
      T got;                                                                                  \
      for (t = 0; t <= MYTHREAD; ++t) e += t % 3 + 1;                                         \
      mob_upc_get_bytes(&got, mob_upc_pointer(to.offset, (uint32_t)MYTHREAD, 0), sizeof got); \
      CHECK(got == (T)e);                                                                     \
    }                                                                                         \
  } while (0)

static int expected(upc_op_t op, int a, int b) {
  switch (op) {
    case UPC_ADD:
      return a + b;
    case UPC_MULT:
      return a * b;
    case UPC_MIN:
      return a < b ? a : b;
    case UPC_MAX:
      return a > b ? a : b;
    case UPC_LOGAND:
      return a && b;
    case UPC_LOGOR:
      return a || b;
    case UPC_AND:
      return a & b;
    case UPC_OR:
      return a | b;
    default:
      return a ^ b;
  }
}

static void types(void) {
  mob_upc_ptr_t from = upc_all_alloc((size_t)THREADS, 16);
  mob_upc_ptr_t to = upc_all_alloc((size_t)THREADS, 16);
  mob_upc_ptr_t mine = mob_upc_pointer(from.offset, (uint32_t)MYTHREAD, 0);
  mob_upc_ptr_t one = mob_upc_pointer(result, 0, 0);
  OPERATIONS(C, signed char, 1);
  OPERATIONS(UC, unsigned char, 1);
  OPERATIONS(S, short, 1);
  OPERATIONS(US, unsigned short, 1);
  OPERATIONS(I, int, 1);
  OPERATIONS(UI, unsigned, 1);
  OPERATIONS(L, long, 1);
  OPERATIONS(UL, unsigned long, 1);
  OPERATIONS(F, float, 0);
  OPERATIONS(D, double, 0);
  OPERATIONS(LD, long double, 0);
  mob_upc_put_int(mine, MYTHREAD + 5);
  upc_all_reduceI(one, from, UPC_FUNC, (size_t)THREADS, 1, larger, 0);
  CHECK(mob_upc_get_int(one) == THREADS + 4);
  upc_all_free(from);
  upc_all_free(to);
}

/* Each thread changes the element of the next one before the call, and reads the result in any
 * thread behind it. */
static void synchronous(void) {
  const uint32_t all = (uint32_t)THREADS;
  const mob_upc_ptr_t from = upc_all_alloc((size_t)THREADS, sizeof(int));
  uint32_t k;
  for (k = 0; k < 100 * all; ++k) {
    const mob_upc_ptr_t one = mob_upc_pointer(result, k % all, 0);
    const uint32_t next = ((uint32_t)MYTHREAD + 1) % all;
    mob_upc_put_int(mob_upc_pointer(from.offset, next, 0), (int)k + (int)next);
    upc_all_reduceI(one, from, UPC_ADD, (size_t)THREADS, 1, NULL, sync_modes[k % 2]);
    CHECK(mob_upc_get_int(one) == (int)(all * k + all * (all - 1) / 2));
  }
  mob_upc_barrier(HERE);
  upc_all_free(from);
}

MOB_UPC_API int mob_upc_main(void);
int mob_upc_main(void) {
  const upc_tick_t start = upc_ticks_now();
  size_t i;
  for (i = 0; i < COUNT(sync_modes); ++i) moves(i == 0 ? 5000 : 13, sync_modes[i]);
  moves(0, 0);
  layouts();
  types();
  synchronous();
  CHECK(upc_ticks_now() > start && upc_ticks_to_ns(upc_ticks_now() - start) > 1000);
  return 0;
}

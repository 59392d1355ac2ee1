/* SPDX-License-Identifier: BSD-3-Clause */
/* Pointers, accesses, static objects and barriers, as translated code uses them. */
#include "upc_tests.h"

/* shared int cyclic[10 * THREADS] = {1, 2, 3, 4, 5}; */
static uint64_t cyclic;
static const int cyclic_initial[] = {1, 2, 3, 4, 5};
/* shared [3] double blocked[7 * THREADS] = {0.5, 1.5, ..., 7.5}; */
static uint64_t blocked;
static const double blocked_initial[] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5};
/* shared [] long whole[100] = {7, 8}; */
static uint64_t whole;
static const long whole_initial[] = {7, 8};
/* shared [] char large[1 << 20] = {1}; */
static uint64_t large;
static const char large_initial[] = {1};
/* shared int scalar = 42; */
static uint64_t scalar;
static const int scalar_initial = 42;
/* shared struct mixed structure; static shared int twin; extern shared int common; */
struct mixed {
  char c;
  int i;
  double d;
  mob_upc_ptr_t next;
  unsigned low : 3;
  int high : 13;
  unsigned long wide : 60;
};
static uint64_t structure;
static uint64_t twin;
uint64_t* common_of_other(void);
uint64_t twin_of_other(void);
static uint64_t common;
static uint64_t declared;
static mob_upc_ptr_t private_pointer; /* shared int *private_pointer = &cyclic[4]; */

static const mob_upc_object_t objects[] = {
    {"cyclic", &cyclic, sizeof(int), 1, 10, MOB_UPC_TIMES_THREADS, 0, cyclic_initial,
     sizeof cyclic_initial, "language.upc:1"},
    {"blocked", &blocked, sizeof(double), 3, 7, MOB_UPC_TIMES_THREADS, 0, blocked_initial,
     sizeof blocked_initial, "language.upc:2"},
    {"whole", &whole, sizeof(long), 0, 100, 0, 0, whole_initial, sizeof whole_initial,
     "language.upc:3"},
    {"large", &large, 1, 0, 1 << 20, 0, 1, large_initial, sizeof large_initial, "language.upc:4"},
    {"scalar", &scalar, sizeof(int), 1, 1, 0, 0, &scalar_initial, sizeof scalar_initial,
     "language.upc:5"},
    {"structure", &structure, sizeof(struct mixed), 1, 1, 0, 0, NULL, 0, "language.upc:6"},
    {"twin", &twin, sizeof(int), 1, 1, MOB_UPC_STATIC, 0, NULL, 0, "language.upc:7"},
    {"common", &common, sizeof(int), 1, 2, MOB_UPC_COMMON | MOB_UPC_TIMES_THREADS, 0, NULL, 0,
     "language.upc:8"},
    {"declared", &declared, sizeof(short), 1, 0, MOB_UPC_EXTERN, 0, NULL, 0, "language.upc:9"},
};

static void set_up(void) {
  private_pointer = mob_upc_element_cyclic(cyclic, 4, sizeof(int));
  if (MYTHREAD == 0) {
    mob_upc_ptr_t at = mob_upc_element_cyclic(structure, 0, sizeof(struct mixed));
    mob_upc_put_shared(mob_upc_member(at, offsetof(struct mixed, next)), private_pointer);
  }
}
REGISTER(objects, set_up)

static mob_upc_ptr_t cyclic_at(uint64_t i) {
  return mob_upc_element_cyclic(cyclic, i, sizeof(int));
}
static mob_upc_ptr_t blocked_at(uint64_t i) {
  return mob_upc_element_blocked(blocked, i, sizeof(double), 3);
}

static void initial_values(void) {
  int i;
  for (i = 0; i < 10 * THREADS; ++i) {
    CHECK(mob_upc_get_int(cyclic_at((uint64_t)i)) == (i < 5 ? i + 1 : 0));
  }
  for (i = 0; i < 7 * THREADS; ++i) {
    double value = mob_upc_get_double(blocked_at((uint64_t)i));
    CHECK(i < 8 && i < 7 * THREADS ? value == i + 0.5 : value == 0);
  }
  CHECK(mob_upc_get_long(mob_upc_element_indefinite(whole, 1, sizeof(long))) == 8);
  CHECK(mob_upc_get_long(mob_upc_element_indefinite(whole, 99, sizeof(long))) == 0);
  CHECK(mob_upc_get_char(mob_upc_element_indefinite(large, 0, 1)) == 1);
  CHECK(mob_upc_get_char(mob_upc_element_indefinite(large, (1 << 20) - 1, 1)) == 0);
  CHECK(mob_upc_get_int(mob_upc_element_cyclic(scalar, 0, sizeof(int))) == 42);
  CHECK(mob_upc_get_int(private_pointer) == 5);
  CHECK(mob_upc_equal(mob_upc_get_shared(mob_upc_member(mob_upc_pointer(structure, 0, 0),
                                                        offsetof(struct mixed, next))),
                      private_pointer));
  mob_upc_barrier(HERE);
}

/* Every step from every element to every other, in the three layouts, against the definition. */
static void arithmetic(void) {
  int64_t i, j;
  const int64_t n = 7 * THREADS;
  for (i = 0; i < n; ++i) {
    mob_upc_ptr_t b = blocked_at((uint64_t)i);
    mob_upc_ptr_t c = cyclic_at((uint64_t)i);
    CHECK(mob_upc_threadof(b) == (size_t)(i / 3 % THREADS) &&
          mob_upc_phaseof(b) == (size_t)(i % 3));
    CHECK(b.offset == blocked + (uint64_t)(i / 3 / THREADS * 3 + i % 3) * sizeof(double));
    CHECK(mob_upc_threadof(c) == (size_t)(i % THREADS) && mob_upc_phaseof(c) == 0);
    CHECK(c.offset == cyclic + (uint64_t)(i / THREADS) * sizeof(int));
    for (j = 0; j < n; ++j) {
      mob_upc_ptr_t other = mob_upc_add_blocked(b, j - i, sizeof(double), 3);
      CHECK(mob_upc_equal(other, blocked_at((uint64_t)j)) && other.phase == (uint32_t)(j % 3));
      CHECK(mob_upc_subtract_blocked(other, b, sizeof(double), 3) == j - i);
      other = mob_upc_add_cyclic(c, j - i, sizeof(int));
      CHECK(mob_upc_equal(other, cyclic_at((uint64_t)j)));
      CHECK(mob_upc_subtract_cyclic(other, c, sizeof(int)) == j - i);
      other = mob_upc_add_indefinite(mob_upc_element_indefinite(whole, (uint64_t)i, 8), j - i, 8);
      CHECK(mob_upc_equal(other, mob_upc_element_indefinite(whole, (uint64_t)j, 8)));
      CHECK(mob_upc_subtract_indefinite(other, mob_upc_element_indefinite(whole, (uint64_t)i, 8),
                                        8) == j - i);
    }
  }
  for (i = -1000; i < 1000; ++i) {
    const int64_t scaled = i * ((int64_t)1 << 50);
    int64_t rows;
    int64_t rest = mob_upc_divide_by_threads(i, &rows);
    CHECK(rest >= 0 && rest < THREADS && rows * THREADS + rest == i);
    rest = mob_upc_divide_by_threads(scaled, &rows);
    CHECK(rest >= 0 && rest < THREADS && rows * THREADS + rest == scaled);
    rest = mob_upc_divide_by_threads(scaled - 1, &rows);
    CHECK(rest >= 0 && rest < THREADS && rows * THREADS + rest == scaled - 1);
  }
  CHECK(mob_upc_is_null(mob_upc_null()) && !mob_upc_is_null(cyclic_at(0)));
  CHECK(mob_upc_resetphase(blocked_at(2)).phase == 0);
  for (i = 0; i < 40; ++i) {
    size_t total = 0;
    for (j = 0; j < THREADS; ++j) total += mob_upc_affinitysize((size_t)i * 4, 12, (size_t)j);
    CHECK(total == (size_t)i * 4);
  }
  CHECK(mob_upc_affinitysize(80, 0, 0) == 80);
  CHECK(THREADS == 1 || mob_upc_affinitysize(80, 12, 1) == (size_t)(THREADS == 2   ? 36
                                                                    : THREADS == 3 ? 24
                                                                    : THREADS == 4 ? 24
                                                                                   : 12));
}

/* clang-format off */
#define EACH_TYPE(X) \
  X(char, char) \
  X(schar, signed char) \
  X(uchar, unsigned char) \
  X(short, short) \
  X(ushort, unsigned short) \
  X(int, int) \
  X(uint, unsigned) \
  X(long, long) \
  X(ulong, unsigned long) \
  X(llong, long long) \
  X(ullong, unsigned long long) \
  X(float, float) \
  X(double, double) \
  X(ldouble, long double) \
  X(int128, mob_upc_int128_t_) \
  X(uint128, mob_upc_uint128_t_) \
  X(cfloat, float _Complex) \
  X(cdouble, double _Complex) \
  X(cldouble, long double _Complex)
/* clang-format on */

/* Each thread writes into its right neighbour's element, and reads it there. */
static void every_type(void) {
  const int right = (MYTHREAD + 1) % THREADS;
  mob_upc_ptr_t at = mob_upc_pointer(blocked, (uint32_t)right, 0);
#define TRY(name, T)                                                                 \
  CHECK(mob_upc_put_##name(at, (T)(MYTHREAD + 3)) == (T)(MYTHREAD + 3));             \
  CHECK(mob_upc_get_##name(at) == (T)(MYTHREAD + 3));                                \
  mob_upc_barrier(HERE);                                                             \
  CHECK(*(T*)mob_upc_local(blocked) == (T)((MYTHREAD + THREADS - 1) % THREADS + 3)); \
  mob_upc_barrier(HERE);                                                             \
  CHECK(mob_upc_put_strict_##name(at, (T)(MYTHREAD + 4)) == (T)(MYTHREAD + 4));      \
  CHECK(mob_upc_get_strict_##name(at) == (T)(MYTHREAD + 4));
  EACH_TYPE(TRY)
  CHECK(mob_upc_put_bool(at, 1) == 1 && mob_upc_get_strict_bool(at) == 1);
  CHECK(mob_upc_put_pointer(at, &private_pointer) == &private_pointer);
  CHECK(mob_upc_get_pointer(at) == &private_pointer);
  mob_upc_put_strict_shared(at, at);
  CHECK(mob_upc_equal(mob_upc_get_strict_shared(at), at));
  mob_upc_barrier(HERE);
}

static void structures(void) {
  struct mixed mine, back;
  mob_upc_ptr_t at = mob_upc_pointer(structure, (uint32_t)((MYTHREAD + 1) % THREADS), 0);
  uint64_t bit = 8 * (offsetof(struct mixed, next) + sizeof(mob_upc_ptr_t));
  memset(&mine, 0, sizeof mine);
  mine.c = 'x';
  mine.i = MYTHREAD;
  mine.d = 2.5;
  mine.low = 5;
  mine.high = -77;
  mine.wide = 0x123456789abcdeful;
  mob_upc_put_bytes(at, &mine, sizeof mine);
  mob_upc_get_bytes(&back, at, sizeof back);
  CHECK(memcmp(&mine, &back, sizeof mine) == 0);
  CHECK(mob_upc_get_bits(at, bit, 3) == 5);
  CHECK(mob_upc_get_signed_bits(at, bit + 3, 13) == -77);
  mob_upc_put_bits(at, bit + 3, 13, (uint64_t)-1234);
  CHECK(mob_upc_get_bits(at, bit, 3) == 5 && mob_upc_get_signed_bits(at, bit + 3, 13) == -1234);
  CHECK(mob_upc_get_bits(at, bit + 64, 60) == mine.wide);
  mob_upc_put_bits(at, bit + 64, 60, 42);
  mob_upc_get_strict_bytes(&back, at, sizeof back);
  CHECK(back.low == 5 && back.high == -1234 && back.wide == 42 && back.i == MYTHREAD);
  back.i = 1000 + MYTHREAD;
  mob_upc_put_strict_bytes(at, &back, sizeof back);
  mob_upc_barrier(HERE);
  CHECK(((struct mixed*)mob_upc_local(structure))->i == 1000 + (MYTHREAD + THREADS - 1) % THREADS);
  mob_upc_barrier(HERE);
  mob_upc_copy_bytes(mob_upc_pointer(structure, (uint32_t)MYTHREAD, 0), at, sizeof back);
  CHECK(mob_upc_get_int(
            mob_upc_pointer(structure + offsetof(struct mixed, i), (uint32_t)MYTHREAD, 0)) >= 1000);
  mob_upc_barrier(HERE);
}

static void files_together(void) {
  CHECK(common == *common_of_other() && common != 0);
  CHECK(twin != twin_of_other());
  CHECK(mob_upc_get_short(mob_upc_element_cyclic(declared, 1, sizeof(short))) == 22);
}

static void private_casts(void) {
  int* mine = mob_upc_to_private(mob_upc_pointer(scalar, (uint32_t)MYTHREAD, 0));
  CHECK(mine == mob_upc_local(scalar));
  CHECK(mob_upc_to_private(mob_upc_null()) == NULL);
  CHECK(mob_upc_addrfield(mob_upc_pointer(scalar, (uint32_t)MYTHREAD, 0)) == (size_t)mine);
  CHECK(mob_upc_addrfield(mob_upc_null()) == 0);
}

static void barriers(void) {
  int i;
  for (i = 0; i < 30; ++i) {
    mob_upc_put_int(mob_upc_pointer(cyclic, (uint32_t)MYTHREAD, 0), i);
    if ((i + MYTHREAD) % 2 == 0) {
      mob_upc_notify_value(i, HERE);
      if (i % 3 != 0)
        mob_upc_wait_value(i, HERE);
      else
        mob_upc_wait(HERE);
    } else if (i % 5 == 0) {
      mob_upc_barrier(HERE);
    } else {
      mob_upc_barrier_value(i, HERE);
    }
    CHECK(mob_upc_get_int(mob_upc_pointer(cyclic, (uint32_t)((MYTHREAD + 1) % THREADS), 0)) == i);
    mob_upc_notify(HERE);
    mob_upc_wait(HERE);
  }
}

/* Writes and reads of one element happen in program order, on another host, too. */
static void program_order(void) {
  int i;
  mob_upc_ptr_t at = mob_upc_pointer(cyclic + 8, (uint32_t)((MYTHREAD + 1) % THREADS), 0);
  for (i = 0; i < 50; ++i) {
    mob_upc_put_int(at, i);
    mob_upc_put_int(at, i + 1);
    CHECK(mob_upc_get_int(at) == i + 1);
  }
  mob_upc_barrier(HERE);
}

MOB_UPC_API int mob_upc_main(int argc, char** argv, char** environment);
int mob_upc_main(int argc, char** argv, char** environment) {
  CHECK(argc >= 1 && argv[0] != NULL && environment != NULL);
  initial_values();
  arithmetic();
  every_type();
  structures();
  files_together();
  private_casts();
  barriers();
  program_order();
  CHECK(mob_upc_is_my_turn(MYTHREAD) && mob_upc_is_my_turn(MYTHREAD + 5 * THREADS));
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* One error by name. The message is in CMakeLists.txt; a program that goes on says so. */
#include <bupc_extensions.h>
#include <upc.h>
#include <upc_atomic.h>
#include <upc_collective.h>

#include "upc_tests.h"

static uint64_t array;
static uint64_t other;
static const mob_upc_object_t objects[] = {
    {"array", &array, sizeof(int), 1, 10, MOB_UPC_TIMES_THREADS, 0, NULL, 0, "bad.upc:1"},
};
static mob_upc_unit_t unit = {MOB_UPC_UNIT_VERSION, 0, "bad.upc", objects, 1, NULL, NULL};

/* Files that do not fit. */
static const mob_upc_object_t undefined[] = {
    {"missing", &other, sizeof(int), 1, 1, MOB_UPC_EXTERN, 0, NULL, 0, "bad.upc:2"},
};
static const mob_upc_object_t twice[] = {
    {"array", &other, sizeof(int), 1, 10, MOB_UPC_TIMES_THREADS, 0, NULL, 0, "other.upc:3"},
};
static const mob_upc_object_t layout[] = {
    {"array", &other, sizeof(int), 4, 10, MOB_UPC_TIMES_THREADS | MOB_UPC_EXTERN, 0, NULL, 0,
     "other.upc:4"},
};
static const mob_upc_object_t length[] = {
    {"array", &other, sizeof(int), 1, 11, MOB_UPC_TIMES_THREADS | MOB_UPC_EXTERN, 0, NULL, 0,
     "other.upc:5"},
};
static mob_upc_unit_t second = {MOB_UPC_UNIT_VERSION, 0, "other.upc", NULL, 1, NULL, NULL};

__attribute__((constructor)) static void join(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  mob_upc_register(&unit);
  if (strcmp(name, "undefined") == 0) second.objects = undefined;
  if (strcmp(name, "twice") == 0) second.objects = twice;
  if (strcmp(name, "layout") == 0) second.objects = layout;
  if (strcmp(name, "length") == 0) second.objects = length;
  if (second.objects != NULL) mob_upc_register(&second);
  if (strcmp(name, "static_threads") == 0) unit.static_threads = 7;
  if (strcmp(name, "version") == 0) unit.version = 99;
  if (strcmp(name, "before_main") == 0) upc_alloc(8);
}

static mob_upc_ptr_t at(int i) { return mob_upc_element_cyclic(array, (uint64_t)i, sizeof(int)); }

MOB_UPC_API int mob_upc_main(int argc, char** argv);
int mob_upc_main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  const int me = MYTHREAD;
  char bytes[64] = {0};
  mob_upc_ptr_t p;
#define CASE(text) if (strcmp(name, #text) == 0)
  CASE(null_read) mob_upc_get_int(mob_upc_null());
  CASE(null_write) mob_upc_put_double(mob_upc_add_cyclic(mob_upc_null(), 3, 8), 1);
  CASE(null_strict) mob_upc_put_strict_char(mob_upc_null(), 1);
  CASE(null_memget) upc_memget(bytes, mob_upc_null(), 8);
  CASE(null_memput) upc_memput(mob_upc_null(), bytes, 8);
  CASE(null_memset) upc_memset(mob_upc_null(), 0, 8);
  CASE(null_lock) upc_lock(mob_upc_null());
  CASE(no_such_thread) upc_memget(bytes, mob_upc_pointer(array, 9, 0), 4);
  CASE(barrier_values) mob_upc_barrier_value(me, "bad.upc:20");
  CASE(notify_twice) {
    mob_upc_notify("bad.upc:21");
    mob_upc_notify("bad.upc:22");
  }
  CASE(wait_alone) mob_upc_wait("bad.upc:23");
  CASE(wait_value) {
    mob_upc_notify_value(4, "bad.upc:24");
    mob_upc_wait_value(5, "bad.upc:25");
  }
  CASE(early_end) {
    if (me == 1) exit(0);
    mob_upc_barrier("bad.upc:26");
  }
  CASE(early_end_value) {
    if (me == 1) exit(0);
    mob_upc_barrier_value(3, "bad.upc:27");
  }
  CASE(free_twice) {
    p = upc_alloc(100);
    upc_free(p);
    upc_free(p);
  }
  CASE(free_global_twice) {
    p = upc_global_alloc(10, 100);
    upc_free(p);
    upc_free(p);
  }
  CASE(free_of_other_twice) {
    p = upc_alloc(100);
    mob_upc_put_bytes(mob_upc_pointer(array, (uint32_t)me, 0), &p.offset, sizeof p.offset);
    mob_upc_barrier(HERE);
    if (me == 0) {
      uint64_t offset;
      mob_upc_get_bytes(&offset, mob_upc_pointer(array, 1, 0), sizeof offset);
      upc_free(mob_upc_pointer(offset, 1, 0));
      upc_free(mob_upc_pointer(offset, 1, 0));
    }
    mob_upc_barrier(HERE);
    if (me == 1) upc_alloc(8);
    mob_upc_barrier(HERE);
  }
  CASE(free_middle) upc_free(mob_upc_member(upc_global_alloc(10, 1000), 64));
  CASE(free_static) upc_free(at(0));
  CASE(free_other_thread) {
    p = upc_global_alloc(10, 1000);
    p.thread = 1;
    upc_free(p);
  }
  CASE(different_sizes) {
    upc_all_alloc(10, me == 0 ? 8 : 800);
    mob_upc_barrier(HERE);
  }
  CASE(lock_twice) {
    p = upc_global_lock_alloc();
    upc_lock(p);
    upc_lock(p);
  }
  CASE(unlock_free) upc_unlock(upc_global_lock_alloc());
  CASE(lock_freed) {
    p = upc_global_lock_alloc();
    upc_lock_free(p);
    upc_lock(p);
  }
  CASE(lock_free_twice) {
    p = upc_global_lock_alloc();
    upc_lock_free(p);
    upc_lock_free(p);
  }
  CASE(lock_free_held) {
    p = upc_global_lock_alloc();
    upc_lock(p);
    upc_lock_free(p);
    exit(0);
  }
  CASE(no_lock) upc_lock(at(0));
  CASE(two_flags) upc_all_broadcast(at(0), at(1), 4, UPC_IN_NOSYNC | UPC_IN_MYSYNC);
  CASE(not_first) upc_all_scatter(at(1), at(0), 4, 0);
  CASE(no_permutation) {
    mob_upc_put_int(mob_upc_pointer(array, (uint32_t)me, 0), 5);
    upc_all_permute(mob_upc_pointer(array + 8, 0, 0), mob_upc_pointer(array + 16, 0, 0), at(0), 4,
                    0);
  }
  CASE(bad_op) upc_all_reduceD(at(0), at(2), UPC_XOR, 1, 1, NULL, 0);
  CASE(no_function) upc_all_reduceI(at(0), at(2), UPC_FUNC, 1, 1, NULL, 0);
  CASE(bad_type) upc_all_atomicdomain_alloc(UPC_CHAR, UPC_ADD, 0);
  CASE(bad_ops) upc_all_atomicdomain_alloc(UPC_DOUBLE, UPC_AND, 0);
  CASE(not_in_domain) {
    int one = 1;
    p = upc_all_atomicdomain_alloc(UPC_INT, UPC_ADD, 0);
    upc_atomic_relaxed(p, NULL, UPC_SET, at(0), &one, NULL);
  }
  CASE(no_operand) {
    p = upc_all_atomicdomain_alloc(UPC_INT, UPC_ADD, 0);
    upc_atomic_relaxed(p, NULL, UPC_ADD, at(0), NULL, NULL);
  }
  CASE(no_domain) upc_atomic_relaxed(at(0), bytes, UPC_GET, at(0), NULL, NULL);
  CASE(index) mob_upc_checked_index(20, 20, "array", "bad.upc:30");
  CASE(negative_index) mob_upc_checked_index(-1, 20, "array", "bad.upc:31");
  CASE(checked_null) mob_upc_checked(mob_upc_null(), 4, "bad.upc:32");
  CASE(checked_outside) {
    mob_upc_checked(mob_upc_pointer(((uint64_t)1 << 62) - 8, (uint32_t)me, 0), 4, "bad.upc:33");
  }
  CASE(checked_behind) {
    p = mob_upc_add_indefinite(upc_alloc(100), 25, sizeof(int));
    mob_upc_checked(p, sizeof(int), "bad.upc:34");
  }
  CASE(checked_cast) mob_upc_checked_cast(at(1 - me), "bad.upc:35");
  CASE(boolean_post) {
    p = bupc_sem_alloc(BUPC_SEM_BOOLEAN);
    bupc_memput_signal(mob_upc_pointer(array, (uint32_t)me, 0), bytes, 4, p, 2);
  }
  CASE(global_exit) upc_global_exit(7);
  CASE(full) {
    if (me == 0 && mob_upc_is_null(upc_global_alloc((size_t)THREADS, 3 << 20))) exit(0);
    if (me != 0) exit(0);
  }
  CASE(too_large) {
    if (me == 1) CHECK(mob_upc_is_null(upc_global_alloc(4, SIZE_MAX / 2)));
    exit(0);
  }
  CASE(exit_code) exit(me == 0 ? 0 : 9);
  CASE(checks_hold) {
    p = upc_alloc(100);
    mob_upc_checked(p, 100, "bad.upc:40");
    mob_upc_checked(mob_upc_member(p, 96), 4, "bad.upc:41");
    mob_upc_checked(at(19), 4, "bad.upc:42");
    mob_upc_checked(upc_all_alloc(10, 200), 200, "bad.upc:43");
    mob_upc_checked_index(19, 20, "array", "bad.upc:44");
    mob_upc_checked_cast(mob_upc_null(), "bad.upc:45");
    mob_upc_checked_cast(at(me), "bad.upc:46");
    exit(0);
  }
  printf("thread %d went on\n", me);
  return 0;
}

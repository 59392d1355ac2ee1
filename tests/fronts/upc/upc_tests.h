/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the run-time library of UPC. */
#ifndef UPC_TESTS_H
#define UPC_TESTS_H

#include <mobius_upc/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "%s:%d: thread %d: %s\n", __FILE__, __LINE__, mob_upc_mythread(), \
              #condition);                                                              \
      mob_upc_global_exit(1);                                                           \
    }                                                                                   \
  } while (0)

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define UPC_TEXT_(x) #x
#define UPC_TEXT(x) UPC_TEXT_(x)
#define HERE __FILE__ ":" UPC_TEXT(__LINE__)

#define MYTHREAD mob_upc_mythread()
#define THREADS mob_upc_threads()

/* As a translator would: the objects of the file, and the constructor that registers them. */
#define REGISTER(objects, set_up)                                                 \
  static mob_upc_unit_t unit_ = {MOB_UPC_UNIT_VERSION, 0,      __FILE__, objects, \
                                 COUNT(objects),       set_up, NULL};             \
  __attribute__((constructor)) static void join_(void) { mob_upc_register(&unit_); }

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The second file of language.c. */
#include "upc_tests.h"

static uint64_t common;
static uint64_t declared;
static uint64_t twin;
static const short declared_initial[] = {11, 22, 33};

static const mob_upc_object_t objects[] = {
    {"declared", &declared, sizeof(short), 1, 6, MOB_UPC_TIMES_THREADS, 0, declared_initial,
     sizeof declared_initial, "language_other.upc:1"},
    {"common", &common, sizeof(int), 1, 2, MOB_UPC_COMMON | MOB_UPC_TIMES_THREADS, 0, NULL, 0,
     "language_other.upc:2"},
    {"twin", &twin, sizeof(int), 1, 1, MOB_UPC_STATIC, 0, NULL, 0, "language_other.upc:3"},
};
REGISTER(objects, NULL)

uint64_t* common_of_other(void);
uint64_t* common_of_other(void) { return &common; }
uint64_t twin_of_other(void);
uint64_t twin_of_other(void) { return twin; }

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_RUNTIME_H
#define MOBIUS_UPC_RUNTIME_H

/**
 * @file
 * What translated UPC programs call: pointers to shared memory, accesses, registration, barriers
 * and checks. Plain C99 and C++, for GCC and Clang. Functions only: no macro is needed by a caller.
 *
 * docs/fronts/upc.md says how the translator uses it. */

#include <mobius_upc/access.h>
#include <mobius_upc/check.h>
#include <mobius_upc/forall.h>
#include <mobius_upc/pointer.h>
#include <mobius_upc/program.h>

#endif

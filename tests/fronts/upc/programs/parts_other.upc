/* SPDX-License-Identifier: BSD-3-Clause */
#include <upc_strict.h>

#include "parts.h"

static shared int hidden = 2;
shared int tentative = 8;

int other_hidden(void) { return hidden; }

int other_sum(void) {
  int i, sum = 0;
  for (i = 0; i < THREADS; i++) {
#pragma upc relaxed
    sum += everywhere[i * THREADS] + common[i];
  }
  return sum;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <upc_strict.h>

#include "parts.h"

static shared int hidden = 2;
shared int tentative = 8;

int other_hidden(void) { return hidden; }

int other_sum(void) {
  extern shared double only_here[2 * THREADS];
  int i, sum = 0;
  if (only_here[3] != 0) return -1;
  for (i = 0; i < THREADS; i++) {
#pragma upc relaxed
    sum += everywhere[i * THREADS] + common[i];
  }
  return sum;
}

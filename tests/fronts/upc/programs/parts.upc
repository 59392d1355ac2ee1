/* SPDX-License-Identifier: BSD-3-Clause
 * A program of three files, for three threads. */
#include "check.h"
#include "parts.h"

shared [THREADS] int everywhere[THREADS * THREADS];
shared int common[THREADS];
static shared int hidden = 1;
shared [100 / THREADS] char text[100] = "three threads";

shared double only_here[2 * THREADS]; /* declared by another file inside of a function */

static int numbers[THREADS + 1];

int main(void) {
  int i;
#if THREADS != 3
#error "THREADS is a number for the preprocessor"
#endif
  switch (THREADS) {
    case 3: break;
    default: CHECK(0);
  }
  everywhere[MYTHREAD * THREADS] = 5 + MYTHREAD;
  common[MYTHREAD] = 2 * MYTHREAD;
  upc_barrier;
  CHECK(other_sum() == 5 + 6 + 7 + 0 + 2 + 4);
  CHECK(hidden == 1 && other_hidden() == 2 && plain(3) == 9);
  for (i = 0; i < 13; i++) CHECK(text[i] == "three threads"[i]);
  CHECK(sizeof numbers == 4 * sizeof(int) && tentative == 8);
  upc_notify 4;
  upc_wait 4;
  DONE();
  return 0;
}

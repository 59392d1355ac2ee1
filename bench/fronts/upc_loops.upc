/* SPDX-License-Identifier: BSD-3-Clause */

/* Loops over shared arrays beside the same loops over private memory: two threads on one host, each
 * with its own part. Thread 0 prints the medians of its rounds, a time for each element.
 *
 *   mobupcc -O2 upc_loops.upc -o upc_loops && mobius run -n 2 ./upc_loops */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <upc_relaxed.h>

enum { kRounds = 15, kSmall = 1 << 14, kLarge = 1 << 20 };

/* In the caches of a processor, and far beyond them. */
static shared [kSmall] double a[kSmall * THREADS], b[kSmall * THREADS], c[kSmall * THREADS];
static shared [kLarge] double x[kLarge * THREADS], y[kLarge * THREADS], z[kLarge * THREADS];
static shared double cyclic_a[kSmall * THREADS], cyclic_b[kSmall * THREADS];
static shared double cyclic_c[kSmall * THREADS];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void* left, const void* right) {
  const double one = *(const double*)left, other = *(const double*)right;
  return (one > other) - (one < other);
}

static double median(double* values) {
  qsort(values, kRounds, sizeof *values, compare);
  return values[kRounds / 2];
}

static double* memory(size_t count) {
  double* made = aligned_alloc(4096, count * sizeof *made);
  if (made == NULL) upc_global_exit(1);
  for (size_t i = 0; i < count; i++) made[i] = (double)i;
  return made;
}

/* The loops are functions of their own, as in a program; what they compute is compared below. */
__attribute__((noinline)) static void add_c(double* p, const double* q, const double* r, int n) {
  for (int i = 0; i < n; i++) p[i] = q[i] + r[i];
}
__attribute__((noinline)) static void add_blocks(void) {
  upc_forall (int i = 0; i < kSmall * THREADS; i++; &a[i]) a[i] = b[i] + c[i];
}
__attribute__((noinline)) static void add_cyclic(void) {
  upc_forall (int i = 0; i < kSmall * THREADS; i++; i)
    cyclic_a[i] = cyclic_b[i] + cyclic_c[i];
}
__attribute__((noinline)) static void triad_c(double* p, const double* q, const double* r, int n) {
  for (int i = 0; i < n; i++) p[i] = q[i] + 3.0 * r[i];
}
__attribute__((noinline)) static void triad(void) {
  upc_forall (int i = 0; i < kLarge * THREADS; i++; &x[i]) x[i] = y[i] + 3.0 * z[i];
}

/* Prints the median times of an element in C and in UPC, and the median ratio of their rounds. */
#define PAIR(name, times, count, plain, upc)                                            \
  do {                                                                                  \
    double plains_[kRounds], upcs_[kRounds], ratios_[kRounds];                          \
    for (int round_ = 0; round_ < kRounds; round_++) {                                  \
      upc_barrier;                                                                      \
      double began_ = now_ns();                                                         \
      for (int time_ = 0; time_ < (times); time_++) plain;                              \
      plains_[round_] = (now_ns() - began_) / (times) / (count);                        \
      upc_barrier;                                                                      \
      began_ = now_ns();                                                                \
      for (int time_ = 0; time_ < (times); time_++) upc;                                \
      upcs_[round_] = (now_ns() - began_) / (times) / (count);                          \
      ratios_[round_] = upcs_[round_] / plains_[round_];                                \
    }                                                                                   \
    if (MYTHREAD == 0)                                                                  \
      printf("%-44s %12.3f ns %12.3f ns  ratio %.2f\n", name, median(plains_),          \
             median(upcs_), median(ratios_));                                           \
  } while (0)

int main(void) {
  double *p = memory(kLarge), *q = memory(kLarge), *r = memory(kLarge);
  upc_forall (int i = 0; i < kSmall * THREADS; i++; &a[i]) {
    b[i] = i;
    c[i] = 1;
  }
  upc_forall (int i = 0; i < kSmall * THREADS; i++; i) {
    cyclic_b[i] = i;
    cyclic_c[i] = 1;
  }
  upc_forall (int i = 0; i < kLarge * THREADS; i++; &x[i]) {
    y[i] = i;
    z[i] = 1;
  }
  PAIR("upc_forall adds arrays in blocks; C loop", 100, kSmall, add_c(p, q, r, kSmall),
       add_blocks());
  PAIR("upc_forall adds cyclic arrays; C loop", 100, kSmall, add_c(p, q, r, kSmall),
       add_cyclic());
  PAIR("upc_forall, STREAM's triad; C loop", 1, kLarge, triad_c(p, q, r, kLarge), triad());
  upc_barrier;
  const int last = kSmall * THREADS - 1;
  if (a[last] != last + 1.0 || cyclic_a[last] != last + 1.0 ||
      x[kLarge * THREADS - 1] != kLarge * THREADS - 1 + 3.0 || p[9] != 36.0) {
    fprintf(stderr, "upc_loops: a sum is wrong\n");
    return 1;
  }
  return 0;
}

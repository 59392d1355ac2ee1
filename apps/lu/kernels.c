/* SPDX-License-Identifier: BSD-3-Clause */

#include "kernels.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Each element is updated by one term after another, in the same order whatever the process, so
 * that all variants of the program give the same bits. */

/* Unrolled, as it is not more than 31 bytes of code otherwise, and takes half as long again where a
 * program happens to have these across a boundary of 32. */
static void subtract_scaled(double* restrict to, const double* restrict from, double factor,
                            int n) {
#ifndef __clang__ /* which unrolls without being told */
#pragma GCC unroll 4
#endif
  for (int i = 0; i < n; ++i) to[i] -= factor * from[i];
}

static void factor(double* a, int n) {
  for (int k = 0; k < n; ++k) {
    double* column = a + (long)k * n;
    for (int i = k + 1; i < n; ++i) column[i] /= column[k];
    for (int j = k + 1; j < n; ++j) {
      double* other = a + (long)j * n;
      subtract_scaled(other + k + 1, column + k + 1, other[k], n - k - 1);
    }
  }
}

static void divide_by_upper(double* a, const double* diagonal, int m, int n) {
  for (int k = 0; k < n; ++k) {
    double* column = a + (long)k * m;
    for (int i = 0; i < m; ++i) column[i] /= diagonal[k + (long)k * n];
    for (int j = k + 1; j < n; ++j) {
      subtract_scaled(a + (long)j * m, column, diagonal[k + (long)j * n], m);
    }
  }
}

static void divide_by_lower(double* a, const double* diagonal, int m, int n) {
  for (int j = 0; j < n; ++j) {
    double* column = a + (long)j * m;
    for (int k = 0; k < m; ++k) {
      subtract_scaled(column + k + 1, diagonal + (long)k * m + k + 1, column[k], m - k - 1);
    }
  }
}

static void subtract_product(double* c, const double* a, const double* b, int m, int n, int k) {
  for (int j = 0; j < n; ++j) {
    for (int l = 0; l < k; ++l) {
      subtract_scaled(c + (long)j * m, a + (long)l * m, b[l + (long)j * k], m);
    }
  }
}

const kernels_t kernels_plain = {factor, divide_by_upper, divide_by_lower, subtract_product};

/* BLAS by its Fortran interface, which every implementation has. */

static void (*dtrsm)(const char* side, const char* uplo, const char* trans, const char* diag,
                     const int* m, const int* n, const double* alpha, const double* a,
                     const int* lda, double* b, const int* ldb);
static void (*dgemm)(const char* transa, const char* transb, const int* m, const int* n,
                     const int* k, const double* alpha, const double* a, const int* lda,
                     const double* b, const int* ldb, const double* beta, double* c,
                     const int* ldc);

static const double kOne = 1.0, kMinusOne = -1.0;

static void blas_divide_by_upper(double* a, const double* diagonal, int m, int n) {
  dtrsm("R", "U", "N", "N", &m, &n, &kOne, diagonal, &n, a, &m);
}

static void blas_divide_by_lower(double* a, const double* diagonal, int m, int n) {
  dtrsm("L", "L", "N", "U", &m, &n, &kOne, diagonal, &m, a, &m);
}

static void blas_subtract_product(double* c, const double* a, const double* b, int m, int n,
                                  int k) {
  dgemm("N", "N", &m, &n, &k, &kMinusOne, a, &m, b, &k, &kOne, c, &m);
}

static const kernels_t kernels_blas = {factor, blas_divide_by_upper, blas_divide_by_lower,
                                       blas_subtract_product};

const kernels_t* kernels_of_blas(const char* library, const char** reason) {
  /* Each process of the program has a processor of its own already. */
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  setenv("OMP_NUM_THREADS", "1", 0);
  void* blas = dlopen(library, RTLD_NOW);
  if (blas != NULL) {
    *(void**)&dtrsm = dlsym(blas, "dtrsm_");
    *(void**)&dgemm = dlsym(blas, "dgemm_");
  }
  if (dtrsm != NULL && dgemm != NULL) return &kernels_blas;
  *reason = dlerror();
  return NULL;
}

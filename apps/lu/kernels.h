/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LU_KERNELS_H
#define LU_KERNELS_H

/* The four steps of the factorisation on blocks. A block is stored column by column without gaps:
 * its number of rows is its leading dimension. */

typedef struct {
  /** Factors the block a (n × n) into L and U in place, without pivoting. */
  void (*factor)(double* a, int n);
  /** a (m × n) := a · U⁻¹, where the diagonal block has U (n × n). */
  void (*divide_by_upper)(double* a, const double* diagonal, int m, int n);
  /** a (m × n) := L⁻¹ · a, where the diagonal block has L (m × m, ones on its diagonal). */
  void (*divide_by_lower)(double* a, const double* diagonal, int m, int n);
  /** c (m × n) -= a (m × k) · b (k × n). */
  void (*subtract_product)(double* c, const double* a, const double* b, int m, int n, int k);
} kernels_t;

/** Plain loops, as in SPLASH-2. */
extern const kernels_t kernels_plain;

/**
 * Those of an installed BLAS, loaded at run time.
 * @param library  file of the library, as dlopen() takes it
 * @param reason   out: why NULL was returned
 */
const kernels_t* kernels_of_blas(const char* library, const char** reason);

#endif

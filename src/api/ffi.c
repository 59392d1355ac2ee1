/* SPDX-License-Identifier: BSD-3-Clause */

/* Compiles the inlined functions into symbols, from the same text, for callers that cannot inline.
 */
#define MOB_EMIT_SYMBOLS
#include <mobius/mobius.h>

// SPDX-License-Identifier: BSD-3-Clause
// What upc_forall loops of all translated files share.

#include <mobius_upc/forall.h>

int mob_upc_forall_depth_ = 0;

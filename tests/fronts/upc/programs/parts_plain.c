/* SPDX-License-Identifier: BSD-3-Clause */
#include <mobius/mobius.h>

int plain(int number);
int plain(int number) { return number * mob_size(); }

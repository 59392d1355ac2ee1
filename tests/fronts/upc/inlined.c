/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses, whose machine code check_inline.py looks at. */
#include <mobius_upc/runtime.h>

int check_get_int(mob_upc_ptr_t p);
int check_get_int(mob_upc_ptr_t p) { return mob_upc_get_int(p); }
void check_put_int(mob_upc_ptr_t p, int value);
void check_put_int(mob_upc_ptr_t p, int value) { mob_upc_put_int(p, value); }
double check_get_double(mob_upc_ptr_t p);
double check_get_double(mob_upc_ptr_t p) { return mob_upc_get_double(p); }
void check_put_double(mob_upc_ptr_t p, double value);
void check_put_double(mob_upc_ptr_t p, double value) { mob_upc_put_double(p, value); }
long check_get_long(mob_upc_ptr_t p);
long check_get_long(mob_upc_ptr_t p) { return mob_upc_get_long(p); }
char check_get_char(mob_upc_ptr_t p);
char check_get_char(mob_upc_ptr_t p) { return mob_upc_get_char(p); }
mob_upc_ptr_t check_get_shared(mob_upc_ptr_t p);
mob_upc_ptr_t check_get_shared(mob_upc_ptr_t p) { return mob_upc_get_shared(p); }
int check_local(uint64_t offset);
int check_local(uint64_t offset) { return *(int*)mob_upc_local(offset); }
void* check_to_private(mob_upc_ptr_t p);
void* check_to_private(mob_upc_ptr_t p) { return mob_upc_to_private(p); }
mob_upc_ptr_t check_add_indefinite(mob_upc_ptr_t p, int64_t i);
mob_upc_ptr_t check_add_indefinite(mob_upc_ptr_t p, int64_t i) {
  return mob_upc_add_indefinite(p, i, 8);
}
mob_upc_ptr_t check_next_cyclic(mob_upc_ptr_t p);
mob_upc_ptr_t check_next_cyclic(mob_upc_ptr_t p) { return mob_upc_add_cyclic(p, 1, 8); }
mob_upc_ptr_t check_element_blocked(uint64_t offset, uint64_t i);
mob_upc_ptr_t check_element_blocked(uint64_t offset, uint64_t i) {
  return mob_upc_element_blocked(offset, i, 8, 10);
}

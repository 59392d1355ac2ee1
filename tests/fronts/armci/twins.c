/* SPDX-License-Identifier: BSD-3-Clause */

/* A counting tool: it defines some functions and calls their twins. Also checks the sizes on which
 * programs compiled for ARMCI-MPI rely. */

#include <armci.h>
#include <stdio.h>
#include <stdlib.h>

static int puts_seen;
static int barriers_seen;

int ARMCI_Put(void* src, void* dst, int bytes, int proc) {
  ++puts_seen;
  return PARMCI_Put(src, dst, bytes, proc);
}

void armci_msg_barrier(void) {
  ++barriers_seen;
  parmci_msg_barrier();
}

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ARMCI_Error("a check failed", 1);                               \
    }                                                                 \
  } while (0)

int main(void) {
  int value = 42;
  void** parts;
  CHECK(sizeof(armci_hdl_t) == 8);
  CHECK(sizeof(ARMCI_Group) == 4 * sizeof(void*) + 2 * sizeof(int)); /* of Open MPI */
  CHECK(sizeof(armci_giov_t) == 2 * sizeof(void*) + 2 * sizeof(int));
  CHECK(ARMCI_ACC_INT == 0 && ARMCI_ACC_LNG == 1 && ARMCI_ACC_FLT == 2 && ARMCI_ACC_DBL == 3 &&
        ARMCI_ACC_CPL == 4 && ARMCI_ACC_DCP == 5);
  CHECK(ARMCI_FETCH_AND_ADD == 0 && ARMCI_FETCH_AND_ADD_LONG == 1 && ARMCI_SWAP == 2 &&
        ARMCI_SWAP_LONG == 3);
  CHECK(SCOPE_ALL == 0 && SCOPE_NODE == 1 && SCOPE_MASTERS == 2);
  CHECK(ARMCI_INT == 0 && ARMCI_LONG == 1 && ARMCI_LONG_LONG == 2 && ARMCI_FLOAT == 3 &&
        ARMCI_DOUBLE == 4 && ARMCI_DOMAIN_SMP == 0);
  CHECK(ARMCI_Init() == 0);
  parts = malloc(sizeof(void*) * (size_t)armci_msg_nproc());
  CHECK(parts != NULL && PARMCI_Malloc(parts, sizeof value) == 0);
  CHECK(ARMCI_Put(&value, parts[0], sizeof value, 0) == 0);
  armci_msg_barrier();
  CHECK(ARMCI_GetValueInt(parts[0], 0) == 42);
  CHECK(puts_seen == 1 && barriers_seen == 1);
  CHECK(ARMCI_Free(parts[armci_msg_me()]) == 0);
  free(parts);
  return ARMCI_Finalize();
}

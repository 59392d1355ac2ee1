/* SPDX-License-Identifier: BSD-3-Clause */

/* RDMA in C99, as ARMCI's LAPI device and GASNet's lapi-conduit use it: a get, then a put, to and
 * from the next task. */

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined LAPI_ERR_BAD_NINTH_PARM || !defined LAPI_DGSM_COPY_SIZE
#error "programs ask for these names by #ifdef"
#endif

#define NEED(condition)                                    \
  do {                                                     \
    if (!(condition)) {                                    \
      fprintf(stderr, "this is not so: " #condition "\n"); \
      exit(1);                                             \
    }                                                      \
  } while (0)

enum { WORDS = 100 };

static long target[WORDS], buffer[WORDS];

static lapi_user_pvo_t translate(lapi_handle_t handle, void* address, unsigned int bytes) {
  lapi_get_pvo_t wish;
  memset(&wish, 0, sizeof wish);
  wish.Util_type = LAPI_XLATE_ADDRESS;
  wish.operation = LAPI_RDMA_ACQUIRE;
  wish.address = address;
  wish.length = bytes;
  NEED(LAPI_Util(handle, (lapi_util_t*)(void*)&wish) == LAPI_SUCCESS);
  return wish.usr_pvo;
}

int main(void) {
  lapi_handle_t handle;
  lapi_info_t info;
  lapi_cntr_t origin;
  lapi_remote_cxt_t context;
  lapi_xfer_t xfer;
  lapi_rdma_tag_t tag = 21;
  lapi_long_t translations[64];
  int task, tasks, next, i;
  memset(&info, 0, sizeof info);
  NEED(LAPI_Init(&handle, &info) == LAPI_SUCCESS);
  NEED(LAPI_Qenv(handle, TASK_ID, &task) == LAPI_SUCCESS);
  NEED(LAPI_Qenv(handle, NUM_TASKS, &tasks) == LAPI_SUCCESS);
  NEED(tasks <= 64);
  next = (task + 1) % tasks;
  for (i = 0; i < WORDS; i++) target[i] = 1000L * task + i;
  NEED(LAPI_Address_init64(handle, translate(handle, target, sizeof target), translations) ==
       LAPI_SUCCESS);
  memset(&context, 0, sizeof context);
  context.Util_type = LAPI_REMOTE_RCXT;
  context.operation = LAPI_RDMA_ACQUIRE;
  context.dest = next;
  NEED(LAPI_Util(handle, (lapi_util_t*)(void*)&context) == LAPI_SUCCESS);
  NEED(LAPI_Setcntr(handle, &origin, 0) == LAPI_SUCCESS);

  memset(&xfer, 0, sizeof xfer);
  xfer.HwXfer.Xfer_type = LAPI_RDMA_XFER;
  xfer.HwXfer.tgt = (unsigned int)next;
  xfer.HwXfer.op = LAPI_RDMA_GET;
  xfer.HwXfer.rdma_tag = tag;
  xfer.HwXfer.remote_cxt = context.usr_rcxt;
  xfer.HwXfer.src_pvo = translate(handle, buffer, sizeof buffer);
  xfer.HwXfer.tgt_pvo = translations[next];
  xfer.HwXfer.len = sizeof buffer;
  xfer.HwXfer.org_cntr = &origin;
  NEED(LAPI_Xfer(handle, &xfer) == LAPI_SUCCESS);
  NEED(LAPI_Waitcntr(handle, &origin, 1, NULL) == LAPI_SUCCESS);
  for (i = 0; i < WORDS; i++) NEED(buffer[i] == 1000L * next + i);

  NEED(LAPI_Gfence(handle) == LAPI_SUCCESS);
  for (i = 0; i < WORDS; i++) buffer[i] = 5000L * task + i;
  xfer.HwXfer.op = LAPI_RDMA_PUT;
  xfer.HwXfer.src_offset = 8;
  xfer.HwXfer.tgt_offset = 16;
  xfer.HwXfer.len = 8 * 50;
  NEED(LAPI_Xfer(handle, &xfer) == LAPI_SUCCESS);
  NEED(LAPI_Waitcntr(handle, &origin, 1, NULL) == LAPI_SUCCESS);
  NEED(LAPI_Gfence(handle) == LAPI_SUCCESS);
  for (i = 0; i < WORDS; i++) {
    const int before = (task + tasks - 1) % tasks;
    NEED(target[i] == (i < 2 || i >= 52 ? 1000L * task + i : 5000L * before + i - 1));
  }
  NEED(LAPI_Term(handle) == LAPI_SUCCESS);
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAPI_UTIL_H
#define LAPI_UTIL_H

/**
 * @file
 * Commands of LAPI_Util(): data gather/scatter programs, the lock of a handle, and what prepares
 * RDMA. Included by lapi.h.
 */

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  LAPI_REGISTER_DGSP,
  LAPI_UNRESERVE_DGSP,
  LAPI_RESERVE_DGSP,
  LAPI_REG_DDM_FUNC,
  LAPI_ADD_UDP_DEST_PORT,
  LAPI_DGSP_PACK,
  LAPI_DGSP_UNPACK,
  LAPI_GET_THREAD_FUNC,
  LAPI_REMOTE_RCXT,
  LAPI_XLATE_ADDRESS,
  LAPI_REGISTER_NOTIFICATION,
  LAPI_LAST_UTIL
} lapi_util_type_t;

/**
 * Operations of a data gather/scatter program. A program is an array of long: the code of an
 * operation, then its operands. Copied blocks follow each other in the packed form.
 */
typedef enum {
  LAPI_DGSM_COPY = 1, /**< bytes, offset: copies a block at the current position + offset */
  LAPI_DGSM_MCOPY,    /**< count, then count × (bytes, offset) */
  /**
   * Repetitions, stride, place: runs the code at `place`, up to its LAPI_DGSM_RETURN, and moves the
   * position by the stride after each repetition.
   */
  LAPI_DGSM_GOSUB,
  LAPI_DGSM_RETURN,  /**< ends the code of LAPI_DGSM_GOSUB */
  LAPI_DGSM_ITERATE, /**< place: moves the position by the extent and continues at `place` */
  LAPI_DGSM_CONTROL  /**< count, then that many operands, which are ignored */
} lapi_dgsm_op_t;

/** Words of an operation in the code; of LAPI_DGSM_MCOPY without its blocks. */
#define LAPI_DGSM_COPY_SIZE 3
#define LAPI_DGSM_MCOPY_SIZE 2
#define LAPI_DGSM_MCOPY_BLOCK_SIZE 2
#define LAPI_DGSM_GOSUB_SIZE 4
#define LAPI_DGSM_ITERATE_SIZE 2

/** Describes the layout of data in memory. The library does not keep it: registering copies it. */
typedef struct {
  long* code;
  int code_size; /**< words of the code */
  int depth;     /**< deepest nesting of LAPI_DGSM_GOSUB, plus 1 */
  int density;   /**< unused */
  long size;     /**< bytes that one run of the program copies */
  long extent;   /**< distance in bytes from one run to the next */
  long lext;     /**< lowest offset */
  long rext;     /**< one past the highest offset */
  int atom_size; /**< blocks are cut only at multiples of this; 0: anywhere */
} lapi_dgsp_descr_t;

typedef struct {
  lapi_util_type_t Util_type;
  lapi_dgsp_descr_t* idgsp;
  void* dgsp_handle; /**< out */
  int status;        /**< out */
} lapi_reg_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;
  void* dgsp_handle;
  int status;
} lapi_dref_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;
  void* dgsp_handle;
  int status;
} lapi_resv_dgsp_t;

/**
 * Combines `bytes` arriving bytes with the user's data. This library stores the function and does
 * not call it.
 */
typedef long (*lapi_ddm_func_t)(void* in, void* inout, long bytes, int operation, int dtype);
typedef struct {
  lapi_util_type_t Util_type;
  lapi_ddm_func_t ddm_func;
  int status;
} lapi_reg_ddm_t;

typedef struct {
  lapi_util_type_t Util_type;
  unsigned int tgt;
  void* udp_port;
  unsigned int instance_no;
} lapi_add_udp_port_t;

typedef struct {
  lapi_util_type_t Util_type;
  void* dgsp_handle;
  void* in_buf;
  unsigned long bytes; /**< size of the packed form to make */
  void* out_buf;
  unsigned long out_size;
  unsigned long position; /**< in and out: position in out_buf */
  int status;
} lapi_pack_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;
  void* buf; /**< the packed form */
  unsigned long in_size;
  unsigned long position; /**< in and out: position in buf */
  void* out_buf;
  unsigned long bytes; /**< bytes of the packed form to read */
  void* dgsp_handle;
  int status;
} lapi_unpack_dgsp_t;

/** A condition of the lock of a handle. */
typedef pthread_cond_t lapi_cond_t;

/**
 * The lock of a handle. While a thread holds it, header handlers run only in calls of that thread.
 */
typedef struct {
  lapi_util_type_t Util_type;
  int (*mutex_lock)(lapi_handle_t hndl);
  int (*mutex_unlock)(lapi_handle_t hndl);
  int (*mutex_trylock)(lapi_handle_t hndl);
  int (*mutex_getowner)(lapi_handle_t hndl, pthread_t* tid);
  int (*cond_wait)(lapi_handle_t hndl, lapi_cond_t* cond);
  int (*cond_timedwait)(lapi_handle_t hndl, lapi_cond_t* cond, struct timespec* timeout);
  int (*cond_signal)(lapi_handle_t hndl, lapi_cond_t* cond);
  int (*cond_init)(lapi_handle_t hndl, lapi_cond_t* cond);
  int (*cond_destroy)(lapi_handle_t hndl, lapi_cond_t* cond);
} lapi_thread_func_t;

/** LAPI_REMOTE_RCXT: the remote context of a task, needed for RDMA with it. */
typedef struct {
  lapi_util_type_t Util_type;
  lapi_rdma_req_t operation;
  int dest;                 /**< the task */
  lapi_user_cxt_t usr_rcxt; /**< out: LAPI_RDMA_ACQUIRE; in: LAPI_RDMA_RELEASE */
} lapi_remote_cxt_t;

/**
 * LAPI_XLATE_ADDRESS: the translation of memory of this task. A transfer is not checked against its
 * length.
 */
typedef struct {
  lapi_util_type_t Util_type;
  unsigned int length;     /**< bytes */
  lapi_user_pvo_t usr_pvo; /**< out: LAPI_RDMA_ACQUIRE; in: LAPI_RDMA_RELEASE */
  void* address;
  lapi_rdma_req_t operation;
} lapi_get_pvo_t;

/**
 * LAPI_REGISTER_NOTIFICATION: what this task, as a target, counts or runs for transfers with a tag.
 * Replaces what the tag had.
 */
typedef struct {
  lapi_util_type_t Util_type;
  lapi_rdma_tag_t rdma_tag;
  lapi_rdma_flg_t flags;
  lapi_cntr_t* cntr;        /**< for LAPI_RCNTR_UPDATE */
  remote_hndlr_t* callback; /**< for LAPI_RCALLBACK */
  void* sinfo;              /**< passed to `callback` */
} lapi_rdma_notification_t;

typedef union {
  lapi_util_type_t Util_type;
  lapi_reg_dgsp_t RegDgsp;
  lapi_dref_dgsp_t DrefDgsp;
  lapi_resv_dgsp_t ResvDgsp;
  lapi_reg_ddm_t DdmFunc;
  lapi_add_udp_port_t Udp;
  lapi_pack_dgsp_t PackDgsp;
  lapi_unpack_dgsp_t UnpackDgsp;
  lapi_thread_func_t ThreadFunc;
  lapi_remote_cxt_t Rcxt;
  lapi_get_pvo_t Pvo;
  lapi_rdma_notification_t RdmaNotify;
} lapi_util_t;

#ifdef __cplusplus
}
#endif
#endif

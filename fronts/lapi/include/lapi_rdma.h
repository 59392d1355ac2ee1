/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAPI_RDMA_H
#define LAPI_RDMA_H

/**
 * @file
 * Remote direct memory access: transfers between memory of two tasks that both have translated
 * beforehand (LAPI_RDMA_XFER of LAPI_Xfer()). Names, members and flags are those that IBM's header
 * declares. Included by lapi.h.
 */

/** Names a task as the target of RDMA: LAPI_REMOTE_RCXT of LAPI_Util() gives it. */
typedef unsigned int lapi_user_cxt_t;
/**
 * Translated memory of a task: LAPI_XLATE_ADDRESS of LAPI_Util() gives it, and any task may use it
 * that was told. 0 is none.
 */
typedef unsigned long long lapi_user_pvo_t;
/** Names what LAPI_REGISTER_NOTIFICATION registered at the target. */
typedef unsigned short lapi_rdma_tag_t;
/** LAPI_RDMA_GET or LAPI_RDMA_PUT, and what the target is to be told. */
typedef unsigned short lapi_rdma_op_t;
/** LAPI_RCALLBACK, LAPI_RCNTR_UPDATE, or both. */
typedef unsigned short lapi_rdma_flg_t;

/** Whether LAPI_Util() gives a remote context or a translation, or takes it back. */
typedef enum { LAPI_RDMA_ACQUIRE, LAPI_RDMA_RELEASE } lapi_rdma_req_t;

#define LAPI_RDMA_GET 0x0001
#define LAPI_RDMA_PUT 0x0002
#define LAPI_RCALLBACK 0x0004    /**< the target runs the function registered for the tag */
#define LAPI_RCNTR_UPDATE 0x0008 /**< the target counts the counter registered for the tag */

/**
 * Runs at the target, in a thread for completion handlers, when the data is there (put) or has left
 * (get). `src` is the task that made the transfer.
 */
typedef void(remote_hndlr_t)(lapi_handle_t* hndl, void* sinfo, int* src);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAPI_H
#define LAPI_H

/**
 * @file
 * LAPI, the low-level application programming interface of the IBM SP, on Möbius.
 *
 * Written from the public manual pages of LAPI; numeric values are those of Möbius.
 * docs/fronts/lapi.md documents each call, its errors, and where it differs from the original.
 * Every call returns LAPI_SUCCESS or one of the LAPI_ERR_… codes below. LAPI_Msg_string() gives the
 * text of an error, which says what was wrong and where. Every LAPI_Name has a twin PLAPI_Name for
 * profiling.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A LAPI context. The same number names it in every task. */
typedef unsigned int lapi_handle_t;
/** An address of any task. */
typedef unsigned long long lapi_long_t;
/** A registered data gather/scatter program. Null: none. */
typedef void* lapi_dg_handle_t;

/**
 * A counter, in any memory. LAPI_Setcntr() makes it one; access it only through the calls below.
 */
typedef struct lapi_cntr {
  uint64_t lapi_value; /* counted by every task that was given its address */
  struct lapi_cntr_status* lapi_status;
} lapi_cntr_t;

/* ---- LAPI_Init ---- */

typedef enum { NULL_DEV, TB2_DEV, TB3_DEV, UDP_DEV, VIRTUAL_DEV, MOBIUS_DEV } lapi_dev_t;
typedef enum { L1_LIB = 0, L2_LIB, LAST_LIB } lapi_lib_t;
/**
 * The kind of an error that a handler gets: internal, or of the communication with another task.
 */
typedef enum { INT_ERR, COM_ERR } lapi_err_t;

/**
 * Called once for each error that no call can return: a task that ended, or a header handler that
 * returned no place for its message. The error code may be passed to LAPI_Msg_string(). Without an
 * error handler the task ends the job with one line. Runs in the thread that detected the error.
 */
typedef void(LAPI_err_hndlr)(lapi_handle_t* hndl, int* error_code, lapi_err_t* err_type,
                             int* task_id, int* src);

/**
 * Attributes of the threads that run completion handlers, and a function that each of them calls
 * first.
 */
typedef struct {
  pthread_attr_t* attr;    /**< null: the default attributes */
  void (*init_func)(void); /**< null: no function */
} com_thread_info_t;

typedef struct {
  int udp_hndlr; /**< unused */
} lapi_extend_t;

/** Zero it before filling it in. */
typedef struct {
  lapi_dev_t protocol;       /**< out: MOBIUS_DEV */
  lapi_lib_t lib_vers;       /**< L2_LIB or LAST_LIB for LAPI_Nopoll_wait() and related calls */
  uint32_t epoch_num;        /**< unused */
  int num_compl_hndlr_thr;   /**< threads for completion handlers; 0 means 1 */
  uint32_t instance_no;      /**< 1 … 16: the handle to open; 0: the next free one */
  int info6;                 /**< must be 0 */
  LAPI_err_hndlr* err_hndlr; /**< may be null */
  com_thread_info_t* lapi_thread_attr; /**< may be null */
  void* adapter_name;                  /**< ignored */
  lapi_extend_t* add_info;             /**< ignored */
} lapi_info_t;

/* ---- LAPI_Qenv, LAPI_Senv ---- */

typedef enum {
  TASK_ID,        /**< the calling task, 0 … NUM_TASKS - 1 */
  NUM_TASKS,      /**< tasks of the job */
  MAX_UHDR_SZ,    /**< bytes of the largest user header, a multiple of 8 */
  MAX_DATA_SZ,    /**< bytes of the largest transfer */
  ERROR_CHK,      /**< set: 1 checks arguments (default), 0 does not */
  TIMEOUT,        /**< set: seconds after which a silent task is an error */
  MIN_TIMEOUT,    /**< smallest TIMEOUT */
  MAX_TIMEOUT,    /**< largest TIMEOUT */
  INTERRUPT_SET,  /**< set: 1 serves other tasks at any time (default), 0 only in calls of LAPI */
  MAX_PORTS,      /**< handles that a task may have */
  MAX_PKT_SZ,     /**< header handlers always get a payload of up to this many bytes at once */
  NUM_REX_BUFS,   /**< retransmission buffers: 0, because no packet is lost */
  REX_BUF_SZ,     /**< their size */
  LOC_ADDRTBL_SZ, /**< size of the table of LAPI_Addr_set(): indices are 1 … this - 1 */
  EPOCH_NUM,      /**< unused: 0 */
  USE_THRESH,     /**< unused: 0 */
  RCV_FIFO_SIZE,  /**< unused: 0 */
  MAX_ATOM_SIZE,  /**< largest atom of a data gather/scatter program */
  /** LAPI_Amsend() copies payloads up to this size, and their buffer is free at once. */
  BUF_CP_SIZE,
  MAX_PKTS_OUT,         /**< unused: 0 */
  ACK_THRESHOLD,        /**< set: stored, without effect */
  QUERY_SHM_ENABLED,    /**< 1 if another task shares memory with this one */
  QUERY_SHM_NUM_TASKS,  /**< number of tasks that share memory, this one included */
  QUERY_SHM_TASKS,      /**< ret_val is int[NUM_TASKS]: each task's position among them, or -1 */
  QUERY_STATISTICS,     /**< ret_val is lapi_statistics_t*: for a network */
  PRINT_STATISTICS,     /**< prints both statistics to standard error; ret_val may be null */
  QUERY_SHM_STATISTICS, /**< ret_val is lapi_statistics_t*: for tasks that share memory */
  /** ret_val is lapi_statistics_t*: for messages of the task to itself. */
  QUERY_LOCAL_SEND_STATISTICS,
  BULK_XFER,         /**< 0 */
  BULK_MIN_MSG_SIZE, /**< 0 */
  LAST_QUERY
} lapi_query_t;

/** Counts of packets sent and received since LAPI_Init(). Packets are messages and transfers. */
typedef struct {
  lapi_long_t Tot_dup_pkt_cnt;
  lapi_long_t Tot_retrans_pkt_cnt;
  lapi_long_t Tot_gho_pkt_cnt;
  lapi_long_t Tot_pkt_sent_cnt;
  lapi_long_t Tot_pkt_recv_cnt;
  lapi_long_t Tot_data_sent;
  lapi_long_t Tot_data_recv;
} lapi_statistics_t;

/* ---- Active messages ---- */

/**
 * Runs when a message has arrived completely. It runs in a thread of its own, in which it may make
 * every call and wait; or in the thread of the header handler, if that asked for it (ret_flags).
 */
typedef void(compl_hndlr_t)(lapi_handle_t* hndl, void* user_info);

/**
 * Runs at the target when a message arrives, and returns the place for its data. It must not wait.
 * `msg_len` is also a lapi_return_info_t*.
 */
typedef void*(hdr_hndlr_t)(lapi_handle_t * hndl, void* uhdr, unsigned int* uhdr_len,
                           unsigned long* msg_len, compl_hndlr_t** comp_h, void** user_info);

/** What the library does with the message (ctl_flags). */
typedef enum { LAPI_CTL_NORMAL, LAPI_DROP_PKT, LAPI_BURY_MSG } lapi_ctl_flags_t;
/** Where the completion handler of a message runs (ret_flags). */
typedef enum {
  LAPI_NORMAL,      /**< in a thread for completion handlers */
  LAPI_LOCAL_STATE, /**< inline; the handler does not communicate */
  LAPI_SEND_REPLY   /**< inline; the handler may send, but not wait */
} lapi_ret_flags_t;

/** Input and output of a header handler beside its arguments. */
typedef struct {
  unsigned long msg_len;      /**< bytes of the message */
  int magic;                  /**< unused */
  lapi_ret_flags_t ret_flags; /**< in and out: where the completion handler runs */
  /** In and out: LAPI_BURY_MSG and LAPI_DROP_PKT discard the message. */
  lapi_ctl_flags_t ctl_flags;
  lapi_dg_handle_t dgsp_handle; /**< in and out: the program that scatters the data */
  unsigned long bytes;          /**< in and out: receive at most this many bytes; 0: all */
  unsigned int src;             /**< the task that sent the message */
  void* udata_one_pkt_ptr;      /**< the whole message if it has arrived, else null */
  /** In and out: position in the program where the data begins. */
  unsigned long recv_offset_dgsp_bytes;
} lapi_return_info_t;

/** Input of the handler that runs when the origin may reuse its buffer (LAPI_Xfer). */
typedef struct {
  unsigned int src;    /**< the target */
  unsigned int reason; /**< LAPI_SUCCESS or an error */
  unsigned long reserve[6];
} lapi_sh_info_t;
typedef void(scompl_hndlr_t)(lapi_handle_t* hndl, void* completion_param, lapi_sh_info_t* info);

/* ---- Vectors ---- */

typedef enum {
  LAPI_GEN_IOVECTOR,    /**< pairs of vectors of equal length */
  LAPI_GEN_GENERIC,     /**< the origin's bytes, in order, into the target's */
  LAPI_GEN_STRIDED_XFER /**< info: base, bytes of a block, distance in bytes from block to block */
} lapi_vectype_t;

typedef struct {
  lapi_vectype_t vec_type;
  unsigned int num_vecs;
  void** info;
  unsigned long* len;
} lapi_vec_t;

/** A vector with addresses of any task, for LAPI_Xfer(). */
typedef struct {
  lapi_vectype_t vec_type;
  unsigned int num_vecs;
  lapi_long_t* info;
  unsigned long* len;
} lapi_lvec_t;

/** Runs at the target of LAPI_Amsendv(), and returns the place for the data. */
typedef lapi_vec_t*(vhdr_hndlr_t)(lapi_handle_t * hndl, void* uhdr, unsigned int* uhdr_len,
                                  unsigned long* len_vec[], compl_hndlr_t** comp_h,
                                  void** user_info);

/* ---- LAPI_Rmw ---- */

typedef enum { FETCH_AND_ADD, FETCH_AND_OR, SWAP, COMPARE_AND_SWAP } RMW_ops_t;
typedef RMW_ops_t Rmw_ops_t;

/* ---- LAPI_Xfer ---- */

#include <lapi_rdma.h>

typedef enum {
  LAPI_AM_XFER,
  LAPI_AM_LW_XFER,
  LAPI_AMV_XFER,
  LAPI_DGSP_XFER,
  LAPI_GET_XFER,
  LAPI_GETV_XFER,
  LAPI_PUT_XFER,
  LAPI_PUTV_XFER,
  LAPI_RMW_XFER,
  LAPI_RDMA_XFER,
  LAPI_LAST_XFER
} lapi_xfer_type_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_AM_XFER or LAPI_AM_LW_XFER */
  int flags;
  unsigned int tgt;
  lapi_long_t hdr_hdl; /**< address of the handler, or its index of LAPI_Addr_set() */
  unsigned int uhdr_len;
  void* uhdr;
  void* udata;
  unsigned long udata_len;
  scompl_hndlr_t* shdlr; /**< called instead of counting org_cntr; may be null */
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_am_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_AMV_XFER */
  int flags;
  unsigned int tgt;
  lapi_long_t hdr_hdl;
  unsigned int uhdr_len;
  void* uhdr;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_vec_t* org_vec;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_amv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_DGSP_XFER */
  int flags;
  unsigned int tgt;
  lapi_long_t hdr_hdl;
  unsigned int uhdr_len;
  void* uhdr;
  void* udata;
  unsigned long udata_len;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
  lapi_dg_handle_t dgsp; /**< the program that gathers udata */
  int status;            /**< out */
} lapi_amdgsp_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_PUT_XFER */
  int flags;
  unsigned int tgt;
  lapi_long_t tgt_addr;
  void* org_addr;
  unsigned long len;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_put_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_GET_XFER */
  int flags;
  unsigned int tgt;
  lapi_long_t tgt_addr;
  void* org_addr;
  unsigned long len;
  compl_hndlr_t* chndlr; /**< runs when the data has arrived; may be null */
  void* cinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
} lapi_get_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_PUTV_XFER */
  int flags;
  unsigned int tgt;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_lvec_t* tgt_vec;
  lapi_vec_t* org_vec;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_putv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_GETV_XFER */
  int flags;
  unsigned int tgt;
  lapi_lvec_t* tgt_vec;
  lapi_vec_t* org_vec;
  compl_hndlr_t* chndlr;
  void* cinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
} lapi_getv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_RMW_XFER */
  int flags;
  unsigned int tgt;
  RMW_ops_t op;
  unsigned int size; /**< bits: 32 or 64 */
  lapi_long_t tgt_var;
  lapi_long_t in_val;        /**< the value; for COMPARE_AND_SWAP the address of two values */
  lapi_long_t* prev_tgt_val; /**< may be null */
  lapi_cntr_t* org_cntr;
  scompl_hndlr_t* shdlr;
  void* sinfo;
} lapi_rmw_t;

/**
 * Both tasks' memory is named by its translation (lapi_get_pvo_t) and an offset in it. `src_…` is
 * at the caller, `tgt_…` at the target, for gets too.
 */
typedef struct {
  lapi_xfer_type_t Xfer_type; /**< LAPI_RDMA_XFER */
  unsigned int tgt;
  lapi_rdma_op_t op;          /**< LAPI_RDMA_GET or LAPI_RDMA_PUT, | LAPI_RCALLBACK, | … */
  lapi_rdma_tag_t rdma_tag;   /**< for LAPI_RCALLBACK and LAPI_RCNTR_UPDATE */
  lapi_user_cxt_t remote_cxt; /**< of the target (lapi_remote_cxt_t) */
  lapi_user_pvo_t src_pvo;
  lapi_user_pvo_t tgt_pvo;
  unsigned int src_offset;
  unsigned int tgt_offset;
  unsigned int len;
  lapi_cntr_t* org_cntr; /**< counted when the data has arrived, of a put also */
  scompl_hndlr_t* shdlr;
  void* sinfo;
} lapi_hwxfer_t;

typedef union {
  lapi_xfer_type_t Xfer_type;
  lapi_get_t Get;
  lapi_am_t Am;
  lapi_rmw_t Rmw;
  lapi_put_t Put;
  lapi_getv_t Getv;
  lapi_putv_t Putv;
  lapi_amv_t Amv;
  lapi_amdgsp_t Dgsp;
  lapi_hwxfer_t HwXfer;
} lapi_xfer_t;

/* ---- LAPI_Msgpoll ---- */

/** Flags of lapi_msg_info_t::status. */
typedef enum {
  LAPI_DISP_CNTR = 1,     /**< polled `cnt` times, and nothing was completed */
  LAPI_SEND_COMPLETE = 2, /**< a message of this task was sent completely */
  LAPI_RECV_COMPLETE = 4, /**< a message was received completely */
  LAPI_BOTH_COMPLETE = 8, /**< both of the above */
  LAPI_POLLING_NET = 16   /**< another thread is polling */
} lapi_msg_state_t;

typedef struct {
  lapi_msg_state_t status;
  unsigned long reserve[10];
} lapi_msg_info_t;

/* ---- Recovery ---- */

/** The state of a task that a counter of LAPI_Setcntr_wstatus() waits for. */
enum { LAPI_MSG_INITIAL, LAPI_MSG_RECVD, LAPI_MSG_PURGED, LAPI_MSG_PURGED_RCVD, LAPI_MSG_INVALID };

#include <lapi_errors.h>
#include <lapi_util.h>

/* ---- The calls ---- */

#define LAPI_DECLARE_(name, arguments) \
  int LAPI_##name arguments;           \
  int PLAPI_##name arguments

LAPI_DECLARE_(Init, (lapi_handle_t * hndl, lapi_info_t* lapi_info));
LAPI_DECLARE_(Term, (lapi_handle_t hndl));
LAPI_DECLARE_(Qenv, (lapi_handle_t hndl, lapi_query_t query, int* ret_val));
LAPI_DECLARE_(Senv, (lapi_handle_t hndl, lapi_query_t query, int set_val));
LAPI_DECLARE_(Msg_string, (int error_code, void* buf));
LAPI_DECLARE_(Util, (lapi_handle_t hndl, lapi_util_t* util_cmd));
LAPI_DECLARE_(Probe, (lapi_handle_t hndl));
LAPI_DECLARE_(Msgpoll, (lapi_handle_t hndl, unsigned int cnt, lapi_msg_info_t* info));

LAPI_DECLARE_(Put, (lapi_handle_t hndl, unsigned int tgt, unsigned long len, void* tgt_addr,
                    void* org_addr, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                    lapi_cntr_t* cmpl_cntr));
LAPI_DECLARE_(Get, (lapi_handle_t hndl, unsigned int tgt, unsigned long len, void* tgt_addr,
                    void* org_addr, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr));
LAPI_DECLARE_(Putv, (lapi_handle_t hndl, unsigned int tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
                     lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr));
LAPI_DECLARE_(Getv, (lapi_handle_t hndl, unsigned int tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
                     lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr));
LAPI_DECLARE_(Rmw, (lapi_handle_t hndl, RMW_ops_t op, unsigned int tgt, int* tgt_var, int* in_val,
                    int* prev_tgt_val, lapi_cntr_t* org_cntr));
LAPI_DECLARE_(Rmw64, (lapi_handle_t hndl, RMW_ops_t op, unsigned int tgt, long long* tgt_var,
                      long long* in_val, long long* prev_tgt_val, lapi_cntr_t* org_cntr));
LAPI_DECLARE_(Amsend, (lapi_handle_t hndl, unsigned int tgt, void* hdr_hdl, void* uhdr,
                       unsigned int uhdr_len, void* udata, unsigned long udata_len,
                       lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr));
LAPI_DECLARE_(Amsendv, (lapi_handle_t hndl, unsigned int tgt, void* hdr_hdl, void* uhdr,
                        unsigned int uhdr_len, lapi_vec_t* org_vec, lapi_cntr_t* tgt_cntr,
                        lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr));
LAPI_DECLARE_(Xfer, (lapi_handle_t hndl, lapi_xfer_t* xfer_cmd));

LAPI_DECLARE_(Setcntr, (lapi_handle_t hndl, lapi_cntr_t* cntr, int val));
LAPI_DECLARE_(Getcntr, (lapi_handle_t hndl, lapi_cntr_t* cntr, int* val));
LAPI_DECLARE_(Waitcntr, (lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur_cntr_val));
LAPI_DECLARE_(Setcntr_wstatus, (lapi_handle_t hndl, lapi_cntr_t* cntr, int num_dest,
                                unsigned int* dest_list, int* dest_status));
LAPI_DECLARE_(Nopoll_wait, (lapi_handle_t hndl, lapi_cntr_t* cntr_ptr, int val, int* cur_cntr_val));

LAPI_DECLARE_(Fence, (lapi_handle_t hndl));
LAPI_DECLARE_(Gfence, (lapi_handle_t hndl));
LAPI_DECLARE_(Address, (void* my_addr, unsigned long* ret_addr));
LAPI_DECLARE_(Address_init, (lapi_handle_t hndl, void* my_addr, void* add_tab[]));
LAPI_DECLARE_(Address_init64, (lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t* add_tab));
LAPI_DECLARE_(Addr_set, (lapi_handle_t hndl, void* addr, int addr_hndl));
LAPI_DECLARE_(Addr_get, (lapi_handle_t hndl, void** addr, int addr_hndl));
LAPI_DECLARE_(Purge_totask, (lapi_handle_t hndl, unsigned int dest));
LAPI_DECLARE_(Resume_totask, (lapi_handle_t hndl, unsigned int dest));

#undef LAPI_DECLARE_

#ifdef __cplusplus
}
#endif
#endif

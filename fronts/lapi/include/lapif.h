! SPDX-License-Identifier: BSD-3-Clause
!
! LAPI on Moebius for Fortran (docs/fronts/lapi.md): fixed and free form. Every call is a subroutine
! whose last argument is the return code. Addresses of other tasks are integers of kind
! LAPI_ADDR_TYPE; LAPI_ADDR_NULL stands for a missing argument of any type (gfortran needs
! -fallow-argument-mismatch for that). Tasks may have a handler at different addresses, so pass
! %val(int(index, 8)) of an index that lapi_addr_set() was given, not the procedure.
      integer, parameter :: LAPI_ADDR_TYPE = 8
      integer, parameter :: LAPI_LONG_TYPE = 8
      integer, parameter :: LAPI_LONG_LONG_TYPE = 8
      integer(kind=8) :: LAPI_ADDR_NULL
      common /lapi_null/ LAPI_ADDR_NULL
      save /lapi_null/
      type lapi_addr_t
        sequence
        integer(kind=8) :: addr
      end type lapi_addr_t
      type lapi_cntr_t
        sequence
        integer(kind=8) :: value
        integer(kind=8) :: status
      end type lapi_cntr_t
      type lapi_info_t
        sequence
        integer(kind=4) :: protocol
        integer(kind=4) :: lib_vers
        integer(kind=4) :: epoch_num
        integer(kind=4) :: num_compl_hndlr_thr
        integer(kind=4) :: instance_no
        integer(kind=4) :: info6
        integer(kind=8) :: err_hndlr
        integer(kind=8) :: com_thread_info
        integer(kind=8) :: adapter_name
        integer(kind=8) :: add_info
      end type lapi_info_t
      type lapi_vec_t
        sequence
        integer(kind=4) :: vec_type
        integer(kind=4) :: num_vecs
        integer(kind=8) :: info
        integer(kind=8) :: len
      end type lapi_vec_t
      type lapi_msg_info_t
        sequence
        integer(kind=4) :: status
        integer(kind=4) :: pad
        integer(kind=8) :: reserve(10)
      end type lapi_msg_info_t
! lapi_dev_t
      integer, parameter :: NULL_DEV = 0
      integer, parameter :: TB2_DEV = 1
      integer, parameter :: TB3_DEV = 2
      integer, parameter :: UDP_DEV = 3
      integer, parameter :: VIRTUAL_DEV = 4
      integer, parameter :: MOBIUS_DEV = 5
! lapi_lib_t
      integer, parameter :: L1_LIB = 0
      integer, parameter :: L2_LIB = 1
      integer, parameter :: LAST_LIB = 2
! lapi_query_t
      integer, parameter :: TASK_ID = 0
      integer, parameter :: NUM_TASKS = 1
      integer, parameter :: MAX_UHDR_SZ = 2
      integer, parameter :: MAX_DATA_SZ = 3
      integer, parameter :: ERROR_CHK = 4
      integer, parameter :: TIMEOUT = 5
      integer, parameter :: MIN_TIMEOUT = 6
      integer, parameter :: MAX_TIMEOUT = 7
      integer, parameter :: INTERRUPT_SET = 8
      integer, parameter :: MAX_PORTS = 9
      integer, parameter :: MAX_PKT_SZ = 10
      integer, parameter :: NUM_REX_BUFS = 11
      integer, parameter :: REX_BUF_SZ = 12
      integer, parameter :: LOC_ADDRTBL_SZ = 13
      integer, parameter :: EPOCH_NUM = 14
      integer, parameter :: USE_THRESH = 15
      integer, parameter :: RCV_FIFO_SIZE = 16
      integer, parameter :: MAX_ATOM_SIZE = 17
      integer, parameter :: BUF_CP_SIZE = 18
      integer, parameter :: MAX_PKTS_OUT = 19
      integer, parameter :: ACK_THRESHOLD = 20
      integer, parameter :: QUERY_SHM_ENABLED = 21
      integer, parameter :: QUERY_SHM_NUM_TASKS = 22
      integer, parameter :: QUERY_SHM_TASKS = 23
      integer, parameter :: QUERY_STATISTICS = 24
      integer, parameter :: PRINT_STATISTICS = 25
      integer, parameter :: QUERY_SHM_STATISTICS = 26
      integer, parameter :: QUERY_LOCAL_SEND_STATISTICS = 27
      integer, parameter :: BULK_XFER = 28
      integer, parameter :: BULK_MIN_MSG_SIZE = 29
      integer, parameter :: LAST_QUERY = 30
! lapi_ctl_flags_t
      integer, parameter :: LAPI_CTL_NORMAL = 0
      integer, parameter :: LAPI_DROP_PKT = 1
      integer, parameter :: LAPI_BURY_MSG = 2
! lapi_ret_flags_t
      integer, parameter :: LAPI_NORMAL = 0
      integer, parameter :: LAPI_LOCAL_STATE = 1
      integer, parameter :: LAPI_SEND_REPLY = 2
! lapi_vectype_t
      integer, parameter :: LAPI_GEN_IOVECTOR = 0
      integer, parameter :: LAPI_GEN_GENERIC = 1
      integer, parameter :: LAPI_GEN_STRIDED_XFER = 2
! RMW_ops_t
      integer, parameter :: FETCH_AND_ADD = 0
      integer, parameter :: FETCH_AND_OR = 1
      integer, parameter :: SWAP = 2
      integer, parameter :: COMPARE_AND_SWAP = 3
! lapi_xfer_type_t
      integer, parameter :: LAPI_GET_XFER = 4
      integer, parameter :: LAPI_AM_XFER = 0
      integer, parameter :: LAPI_PUT_XFER = 6
      integer, parameter :: LAPI_GETV_XFER = 5
      integer, parameter :: LAPI_PUTV_XFER = 7
      integer, parameter :: LAPI_AMV_XFER = 2
      integer, parameter :: LAPI_RMW_XFER = 8
      integer, parameter :: LAPI_DGSP_XFER = 3
      integer, parameter :: LAPI_AM_LW_XFER = 1
      integer, parameter :: LAPI_RDMA_XFER = 9
      integer, parameter :: LAPI_LAST_XFER = 10
! lapi_msg_state_t
      integer, parameter :: LAPI_DISP_CNTR = 1
      integer, parameter :: LAPI_SEND_COMPLETE = 2
      integer, parameter :: LAPI_RECV_COMPLETE = 4
      integer, parameter :: LAPI_BOTH_COMPLETE = 8
      integer, parameter :: LAPI_POLLING_NET = 16
! lapi_util_type_t
      integer, parameter :: LAPI_REGISTER_DGSP = 0
      integer, parameter :: LAPI_UNRESERVE_DGSP = 1
      integer, parameter :: LAPI_RESERVE_DGSP = 2
      integer, parameter :: LAPI_REG_DDM_FUNC = 3
      integer, parameter :: LAPI_ADD_UDP_DEST_PORT = 4
      integer, parameter :: LAPI_DGSP_PACK = 5
      integer, parameter :: LAPI_DGSP_UNPACK = 6
      integer, parameter :: LAPI_GET_THREAD_FUNC = 7
      integer, parameter :: LAPI_REMOTE_RCXT = 8
      integer, parameter :: LAPI_XLATE_ADDRESS = 9
      integer, parameter :: LAPI_REGISTER_NOTIFICATION = 10
      integer, parameter :: LAPI_LAST_UTIL = 11
! lapi_rdma_req_t, lapi_rdma_op_t
      integer, parameter :: LAPI_RDMA_ACQUIRE = 0
      integer, parameter :: LAPI_RDMA_RELEASE = 1
      integer, parameter :: LAPI_RDMA_GET = 1
      integer, parameter :: LAPI_RDMA_PUT = 2
      integer, parameter :: LAPI_RCALLBACK = 4
      integer, parameter :: LAPI_RCNTR_UPDATE = 8
! State of a task that a counter waits for
      integer, parameter :: LAPI_MSG_INITIAL = 0
      integer, parameter :: LAPI_MSG_RECVD = 1
      integer, parameter :: LAPI_MSG_PURGED = 2
      integer, parameter :: LAPI_MSG_PURGED_RCVD = 3
      integer, parameter :: LAPI_MSG_INVALID = 4
! Return codes
      integer, parameter :: LAPI_SUCCESS = 0
      integer, parameter :: LAPI_ERR_UNKNOWN = 401
      integer, parameter :: LAPI_ERR_HNDL_INVALID = 402
      integer, parameter :: LAPI_ERR_TGT = 403
      integer, parameter :: LAPI_ERR_TGT_PURGED = 404
      integer, parameter :: LAPI_ERR_TGT_ADDR_NULL = 405
      integer, parameter :: LAPI_ERR_ORG_ADDR_NULL = 406
      integer, parameter :: LAPI_ERR_DATA_LEN = 407
      integer, parameter :: LAPI_ERR_UHDR_LEN = 408
      integer, parameter :: LAPI_ERR_UHDR_NULL = 409
      integer, parameter :: LAPI_ERR_HDR_HNDLR_NULL = 410
      integer, parameter :: LAPI_ERR_CNTR_NULL = 411
      integer, parameter :: LAPI_ERR_CNTR_VAL = 412
      integer, parameter :: LAPI_ERR_RET_PTR_NULL = 413
      integer, parameter :: LAPI_ERR_IN_VAL_NULL = 414
      integer, parameter :: LAPI_ERR_TGT_VAR_NULL = 415
      integer, parameter :: LAPI_ERR_TGT_VAR_ALIGN = 416
      integer, parameter :: LAPI_ERR_RMW_OP = 417
      integer, parameter :: LAPI_ERR_OP_SZ = 418
      integer, parameter :: LAPI_ERR_QUERY_TYPE = 419
      integer, parameter :: LAPI_ERR_SET_VAL = 420
      integer, parameter :: LAPI_ERR_ADDR_HNDL_RANGE = 421
      integer, parameter :: LAPI_ERR_XFER_CMD = 422
      integer, parameter :: LAPI_ERR_UTIL_CMD = 423
      integer, parameter :: LAPI_ERR_ORG_VEC_NULL = 424
      integer, parameter :: LAPI_ERR_ORG_VEC_TYPE = 425
      integer, parameter :: LAPI_ERR_ORG_VEC_ADDR = 426
      integer, parameter :: LAPI_ERR_ORG_VEC_LEN = 427
      integer, parameter :: LAPI_ERR_TGT_VEC_NULL = 428
      integer, parameter :: LAPI_ERR_TGT_VEC_TYPE = 429
      integer, parameter :: LAPI_ERR_TGT_VEC_ADDR = 430
      integer, parameter :: LAPI_ERR_TGT_VEC_LEN = 431
      integer, parameter :: LAPI_ERR_VEC_TYPE_DIFF = 432
      integer, parameter :: LAPI_ERR_VEC_NUM_DIFF = 433
      integer, parameter :: LAPI_ERR_VEC_LEN_DIFF = 434
      integer, parameter :: LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL = 435
      integer, parameter :: LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL = 436
      integer, parameter :: LAPI_ERR_ORG_STRIDE = 437
      integer, parameter :: LAPI_ERR_TGT_STRIDE = 438
      integer, parameter :: LAPI_ERR_ORG_EXTENT = 439
      integer, parameter :: LAPI_ERR_TGT_EXTENT = 440
      integer, parameter :: LAPI_ERR_INFO_NONZERO_INFO = 441
      integer, parameter :: LAPI_ERR_ALL_HNDL_IN_USE = 442
      integer, parameter :: LAPI_ERR_NO_ENVIRONMENT = 443
      integer, parameter :: LAPI_ERR_MEMORY_EXHAUSTED = 444
      integer, parameter :: LAPI_ERR_TIMEOUT = 445
      integer, parameter :: LAPI_ERR_BAD_PARAMETER = 446
      integer, parameter :: LAPI_ERR_CODE_UNKNOWN = 447
      integer, parameter :: LAPI_ERR_CATALOG_FAIL = 448
      integer, parameter :: LAPI_ERR_MULTIPLE_WAITERS = 449
      integer, parameter :: LAPI_ERR_NUM_DEST = 450
      integer, parameter :: LAPI_ERR_LIB_VERS = 451
      integer, parameter :: LAPI_ERR_TGT_RANGE = 452
      integer, parameter :: LAPI_ERR_HDR_HNDLR_NOTSET = 453
      integer, parameter :: LAPI_ERR_HDR_HNDLR_NO_BUFFER = 454
      integer, parameter :: LAPI_ERR_IN_HANDLER = 455
      integer, parameter :: LAPI_ERR_DGSP = 456
      integer, parameter :: LAPI_ERR_DGSP_ATOM = 457
      integer, parameter :: LAPI_ERR_DGSP_BRANCH = 458
      integer, parameter :: LAPI_ERR_DGSP_COPY_SZ = 459
      integer, parameter :: LAPI_ERR_DGSP_FREE = 460
      integer, parameter :: LAPI_ERR_DGSP_OPC = 461
      integer, parameter :: LAPI_ERR_DGSP_STACK = 462
      integer, parameter :: LAPI_ERR_PACK_SZ = 463
      integer, parameter :: LAPI_ERR_UNPACK_SZ = 464
      integer, parameter :: LAPI_ERR_NO_UDP_HNDLR = 465
      integer, parameter :: LAPI_ERR_SYSTEM = 466
      integer, parameter :: LAPI_ERR_NO_RDMA_RESOURCE = 467
      integer, parameter :: LAPI_ERR_XLATE_FAILED = 468
      integer, parameter :: LAPI_ERR_TGT_CONTEXT = 469
      integer, parameter :: LAPI_ERR_SRC_BUFHNDL = 470
      integer, parameter :: LAPI_ERR_TGT_BUFHNDL = 471
      integer, parameter :: LAPI_ERR_NO_CNTR_REG = 472
      integer, parameter :: LAPI_ERR_NO_CALLBACK_REG = 473
      integer, parameter :: LAPI_ERR_BAD_NINTH_PARM = 474
      integer, parameter :: LAPI_MAX_ERR_STRING = 512

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAPI_ERRORS_H
#define LAPI_ERRORS_H

/**
 * @file
 * Return codes of LAPI, with the text that LAPI_Msg_string() gives for each. Included by lapi.h.
 */

/** Calls X(name, text) for every error; codes count up from 401 in this order. */
#define LAPI_FOR_EACH_ERROR(X)                                                              \
  X(UNKNOWN, "an error without a code of its own")                                          \
  X(HNDL_INVALID, "the handle is not one of LAPI_Init(), or was terminated")                \
  X(TGT, "the target is not a task of the job")                                             \
  X(TGT_PURGED, "the target was purged (LAPI_Purge_totask)")                                \
  X(TGT_ADDR_NULL, "the target address is null")                                            \
  X(ORG_ADDR_NULL, "the origin address is null")                                            \
  X(DATA_LEN, "the length is larger than LAPI_MAX_MSG_SZ")                                  \
  X(UHDR_LEN, "the user header is larger than MAX_UHDR_SZ, or not a multiple of 4 bytes")   \
  X(UHDR_NULL, "the user header is null, but has a length")                                 \
  X(HDR_HNDLR_NULL, "the header handler is null")                                           \
  X(CNTR_NULL, "the counter is null")                                                       \
  X(CNTR_VAL, "the value to wait for is not positive")                                      \
  X(RET_PTR_NULL, "the pointer to the result is null")                                      \
  X(IN_VAL_NULL, "the pointer to the input value is null")                                  \
  X(TGT_VAR_NULL, "the address of the target variable is null")                             \
  X(TGT_VAR_ALIGN, "the target variable is not aligned to its size")                        \
  X(RMW_OP, "the operation is not one of RMW_ops_t")                                        \
  X(OP_SZ, "the size of the variable is neither 32 nor 64 bits")                            \
  X(QUERY_TYPE, "the query is not one that this call knows")                                \
  X(SET_VAL, "the value is out of the setting's range")                                     \
  X(ADDR_HNDL_RANGE, "the index is not in 1 ... LOC_ADDRTBL_SZ - 1")                        \
  X(XFER_CMD, "the transfer is null, or its type is not one of lapi_xfer_type_t")           \
  X(UTIL_CMD, "the command is null, or its type is not one of lapi_util_type_t")            \
  X(ORG_VEC_NULL, "the origin vector is null")                                              \
  X(ORG_VEC_TYPE, "the type of the origin vector is not one of lapi_vectype_t")             \
  X(ORG_VEC_ADDR, "an address in the origin vector is null")                                \
  X(ORG_VEC_LEN, "the lengths of the origin vector are null, or too large in all")          \
  X(TGT_VEC_NULL, "the target vector is null")                                              \
  X(TGT_VEC_TYPE, "the type of the target vector is not one of lapi_vectype_t")             \
  X(TGT_VEC_ADDR, "an address in the target vector is null")                                \
  X(TGT_VEC_LEN, "the lengths of the target vector are null, or too large in all")          \
  X(VEC_TYPE_DIFF, "the two vectors are of different types")                                \
  X(VEC_NUM_DIFF, "the two vectors have different numbers of vectors")                      \
  X(VEC_LEN_DIFF, "a target vector is shorter than its origin vector")                      \
  X(STRIDE_ORG_VEC_ADDR_NULL, "the base address of the strided origin vector is null")      \
  X(STRIDE_TGT_VEC_ADDR_NULL, "the base address of the strided target vector is null")      \
  X(ORG_STRIDE, "the stride of the origin vector is smaller than its blocks")               \
  X(TGT_STRIDE, "the stride of the target vector is smaller than its blocks")               \
  X(ORG_EXTENT, "the extent of the strided origin vector is larger than LAPI_MAX_MSG_SZ")   \
  X(TGT_EXTENT, "the extent of the strided target vector is larger than LAPI_MAX_MSG_SZ")   \
  X(INFO_NONZERO_INFO, "a member of lapi_info_t that must be zero is not: zero it first")   \
  X(ALL_HNDL_IN_USE, "every handle is in use")                                              \
  X(NO_ENVIRONMENT, "the job cannot be joined")                                             \
  X(MEMORY_EXHAUSTED, "this process or host has no memory left")                            \
  X(TIMEOUT, "a task has ended, or does not answer")                                        \
  X(BAD_PARAMETER, "an argument is wrong")                                                  \
  X(CODE_UNKNOWN, "the code is not one of LAPI's")                                          \
  X(CATALOG_FAIL, "the catalogue of messages cannot be opened")                             \
  X(MULTIPLE_WAITERS, "another thread waits for this counter")                              \
  X(NUM_DEST, "the number of destinations is negative, or a list is null")                  \
  X(LIB_VERS, "this call needs lib_vers L2_LIB or LAST_LIB in LAPI_Init()")                 \
  X(TGT_RANGE, "the bytes are not memory of the target")                                    \
  X(HDR_HNDLR_NOTSET, "the target has no header handler with this index (LAPI_Addr_set)")   \
  X(HDR_HNDLR_NO_BUFFER, "a header handler returned no buffer for a message that has data") \
  X(IN_HANDLER, "a header or inline completion handler must not wait")                      \
  X(DGSP, "the handle is not a registered data gather/scatter program")                     \
  X(DGSP_ATOM, "the atom size of the program is out of 0 ... MAX_ATOM_SIZE")                \
  X(DGSP_BRANCH, "the program branches out of its code")                                    \
  X(DGSP_COPY_SZ, "the program copies a negative number of bytes")                          \
  X(DGSP_FREE, "the program is not reserved")                                               \
  X(DGSP_OPC, "the program has an unknown operation")                                       \
  X(DGSP_STACK, "the program nests deeper than it says")                                    \
  X(PACK_SZ, "the buffer to pack into is too small")                                        \
  X(UNPACK_SZ, "the buffer to unpack from is too small")                                    \
  X(NO_UDP_HNDLR, "there are no UDP ports to add")                                          \
  X(SYSTEM, "the operating system refused something")                                       \
  X(NO_RDMA_RESOURCE, "there are no resources for RDMA; no call returns this")              \
  X(XLATE_FAILED, "there is no memory to translate, or no translation to release")          \
  X(TGT_CONTEXT, "the remote context is not one of the target")                             \
  X(SRC_BUFHNDL, "the translation at the origin is none")                                   \
  X(TGT_BUFHNDL, "the translation at the target is none")                                   \
  X(NO_CNTR_REG, "the tag of a transfer has no counter at the target")                      \
  X(NO_CALLBACK_REG, "the tag of a transfer has no function at the target")                 \
  X(BAD_NINTH_PARM, "the ninth argument is wrong; no call returns this")

enum {
  LAPI_SUCCESS = 0,
  LAPI_ERR_BASE_ = 400,
#define LAPI_NAME_ERROR_(name, text) LAPI_ERR_##name,
  LAPI_FOR_EACH_ERROR(LAPI_NAME_ERROR_)
#undef LAPI_NAME_ERROR_
      LAPI_ERR_END_
};

/** Programs ask by #ifdef for this name of the older LAPI. */
#define LAPI_ERR_BAD_NINTH_PARM LAPI_ERR_BAD_NINTH_PARM
/** Size in bytes of a buffer for LAPI_Msg_string(). */
#define LAPI_MAX_ERR_STRING 512
/** Size in bytes of the largest transfer. */
#define LAPI_MAX_MSG_SZ 0x7fffffffffffUL
/** The null address. */
#define LAPI_ADDR_NULL NULL

#endif

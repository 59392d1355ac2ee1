/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_TYPES_H
#define UPC_TYPES_H

/**
 * @file
 * UPC 1.3, §7.3.1: types and values that the libraries share. */

/** An operation, or several in one value. */
typedef unsigned long upc_op_t;
#define UPC_ADD 0x1ul
#define UPC_MULT 0x2ul
#define UPC_AND 0x4ul  /**< bitwise; integer types only, as UPC_OR and UPC_XOR */
#define UPC_OR 0x8ul   /**< bitwise */
#define UPC_XOR 0x10ul /**< bitwise */
#define UPC_LOGAND 0x20ul
#define UPC_LOGOR 0x40ul
#define UPC_MIN 0x80ul
#define UPC_MAX 0x100ul

/** A type of elements. */
typedef int upc_type_t;
#define UPC_CHAR 1
#define UPC_UCHAR 2
#define UPC_SHORT 3
#define UPC_USHORT 4
#define UPC_INT 5
#define UPC_UINT 6
#define UPC_LONG 7
#define UPC_ULONG 8
#define UPC_LLONG 9
#define UPC_ULLONG 10
#define UPC_INT8 11
#define UPC_UINT8 12
#define UPC_INT16 13
#define UPC_UINT16 14
#define UPC_INT32 15
#define UPC_UINT32 16
#define UPC_INT64 17
#define UPC_UINT64 18
#define UPC_FLOAT 19
#define UPC_DOUBLE 20
#define UPC_LDOUBLE 21
#define UPC_PTS 22 /**< a pointer to shared memory */

/**
 * How a collective call synchronises when it begins (IN) and ends (OUT): not at all; so that the
 * caller's own data is safe; so that everybody's is. Without one of a kind: ALLSYNC.
 */
typedef int upc_flag_t;
#define UPC_IN_ALLSYNC 0x1
#define UPC_IN_MYSYNC 0x2
#define UPC_IN_NOSYNC 0x4
#define UPC_OUT_ALLSYNC 0x8
#define UPC_OUT_MYSYNC 0x10
#define UPC_OUT_NOSYNC 0x20

#endif

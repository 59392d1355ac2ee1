/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_IO_H
#define UPC_IO_H

/**
 * @file
 * UPC 1.3 optional library, §7.3: parallel files. All threads make every call, in the same order;
 * `flags` of transfers says how they synchronise (upc_types.h).
 *
 * A file has one pointer for all threads (common) or one for each (individual). Calls on shared
 * buffers use either, calls on private buffers individual ones, calls with lists none.
 *
 * A call that fails returns -1 (upc_all_fopen(): null) and sets errno. Transfers return the number
 * of bytes, which is less than asked for at the end of the file. Wrong use, such as a file that was
 * closed, ends the job with a message. All threads must see the same file system. Data is
 * visible to all threads of a host at once, as with UPC_STRONG_CA; on other hosts as the file
 * system has it.
 *
 * A transfer with UPC_ASYNC among its flags returns 0; upc_all_fwait_async() or a successful
 * upc_all_ftest_async() returns its number of bytes. A file has one at a time. In this library the
 * transfer is done inside the call that starts it, which takes as long as without the flag. Calls
 * whose names end with `_async`, of UPC 1.2, are the same with the flag. */

#include <mobius_upc/faces.h>
#include <upc_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Among the flags of a transfer: upc_all_fwait_async() gives its result. */
#define UPC_ASYNC 0x40

/** A place in a file, or a number of bytes. */
typedef int64_t upc_off_t;

#ifdef __UPC__
/** A file: an object that only pointers name. */
typedef shared struct upc_file_struct upc_file_t;
#define MOB_UPC_FILE_ upc_file_t*
#else
#define MOB_UPC_FILE_ mob_upc_ptr_t
#endif

/** A hint for the file system: kept, and given back by UPC_GET_HINTS. */
struct upc_hint {
  const char* key;
  const char* value;
};
/** A piece of a file. */
struct upc_filevec {
  upc_off_t offset;
  size_t len;
};
/** A piece of private memory. */
struct upc_local_memvec {
  void* baseaddr;
  size_t len;
};
/** A piece of shared memory: `shared [blocksize] char[len]`; blocksize 0: indefinite. */
struct upc_shared_memvec {
  MOB_UPC_SHARED_(void) baseaddr;
  size_t blocksize;
  size_t len;
};
typedef struct upc_hint upc_hint_t;
typedef struct upc_filevec upc_filevec_t;
typedef struct upc_local_memvec upc_local_memvec_t;
typedef struct upc_shared_memvec upc_shared_memvec_t;

/* Flags of upc_all_fopen(): one of the first three, one of *_FP, and others. */
#define UPC_RDONLY 0x1
#define UPC_WRONLY 0x2
#define UPC_RDWR 0x4
#define UPC_INDIVIDUAL_FP 0x8
#define UPC_COMMON_FP 0x10
#define UPC_APPEND 0x20 /**< file pointers begin at the end */
#define UPC_CREATE 0x40
#define UPC_EXCL 0x80 /**< with UPC_CREATE: the file must not be there */
#define UPC_STRONG_CA 0x100
#define UPC_TRUNC 0x200
#define UPC_DELETE_ON_CLOSE 0x400

/* Commands of upc_all_fcntl(). */
#define UPC_GET_CA_SEMANTICS 0x1        /**< returns UPC_STRONG_CA or 0 */
#define UPC_SET_WEAK_CA_SEMANTICS 0x2   /**< returns 0 */
#define UPC_SET_STRONG_CA_SEMANTICS 0x4 /**< returns 0 */
#define UPC_GET_FP 0x8                  /**< returns UPC_COMMON_FP or UPC_INDIVIDUAL_FP */
#define UPC_SET_COMMON_FP 0x10     /**< the pointer begins at 0, or with UPC_APPEND at the end */
#define UPC_SET_INDIVIDUAL_FP 0x20 /**< as UPC_SET_COMMON_FP */
#define UPC_GET_FL 0x40            /**< returns the flags of the file */
#define UPC_GET_FN 0x80            /**< `*(const char**)arg` becomes its name */
#define UPC_GET_HINTS \
  0x100 /**< `*(const struct upc_hint**)arg` becomes its hints; returns how many */
#define UPC_SET_HINT 0x200          /**< `arg` is a struct upc_hint* */
#define UPC_ASYNC_OUTSTANDING 0x400 /**< returns 1 if a transfer was started and not waited for */

#define UPC_SEEK_SET 0x1
#define UPC_SEEK_CUR 0x2
#define UPC_SEEK_END 0x4

/** Opens a file. @return the file, the same in all threads; null if one of them could not */
MOB_UPC_API MOB_UPC_FILE_ upc_all_fopen(const char* fname, int flags, size_t numhints,
                                        struct upc_hint const* hints);
/** Closes a file, and completes what is written. @return 0 */
MOB_UPC_API int upc_all_fclose(MOB_UPC_FILE_ fd);
/** Writes everything to the device. @return 0 */
MOB_UPC_API int upc_all_fsync(MOB_UPC_FILE_ fd);
/** Moves the caller's or the common file pointer. @return its new place */
MOB_UPC_API upc_off_t upc_all_fseek(MOB_UPC_FILE_ fd, upc_off_t offset, int origin);
/** Cuts the file, or makes it longer by zeros. @return 0 */
MOB_UPC_API int upc_all_fset_size(MOB_UPC_FILE_ fd, upc_off_t size);
/** @return the size of the file. */
MOB_UPC_API upc_off_t upc_all_fget_size(MOB_UPC_FILE_ fd);
/** Takes space for a file of `size` bytes, and makes a shorter one that long. @return 0 */
MOB_UPC_API int upc_all_fpreallocate(MOB_UPC_FILE_ fd, upc_off_t size);
/** Asks for or changes a property of the file: see the commands. */
MOB_UPC_API int upc_all_fcntl(MOB_UPC_FILE_ fd, int cmd, void* arg);

/* Transfers of `nmemb` elements of `size` bytes. A shared buffer has blocks of `blocksize` elements
 * (0: indefinite). With the common pointer the threads do one transfer together. */
#define MOB_UPC_TRANSFERS_(result, suffix)                                                         \
  MOB_UPC_API result upc_all_fread_local##suffix(MOB_UPC_FILE_ fd, void* buffer, size_t size,      \
                                                 size_t nmemb, upc_flag_t flags);                  \
  MOB_UPC_API result upc_all_fwrite_local##suffix(MOB_UPC_FILE_ fd, void* buffer, size_t size,     \
                                                  size_t nmemb, upc_flag_t flags);                 \
  MOB_UPC_API result upc_all_fread_shared##suffix(MOB_UPC_FILE_ fd, MOB_UPC_SHARED_(void) buffer,  \
                                                  size_t blocksize, size_t size, size_t nmemb,     \
                                                  upc_flag_t flags);                               \
  MOB_UPC_API result upc_all_fwrite_shared##suffix(MOB_UPC_FILE_ fd, MOB_UPC_SHARED_(void) buffer, \
                                                   size_t blocksize, size_t size, size_t nmemb,    \
                                                   upc_flag_t flags);                              \
  MOB_UPC_API result upc_all_fread_list_local##suffix(                                             \
      MOB_UPC_FILE_ fd, size_t memvec_entries, struct upc_local_memvec const* memvec,              \
      size_t filevec_entries, struct upc_filevec const* filevec, upc_flag_t flags);                \
  MOB_UPC_API result upc_all_fwrite_list_local##suffix(                                            \
      MOB_UPC_FILE_ fd, size_t memvec_entries, struct upc_local_memvec const* memvec,              \
      size_t filevec_entries, struct upc_filevec const* filevec, upc_flag_t flags);                \
  MOB_UPC_API result upc_all_fread_list_shared##suffix(                                            \
      MOB_UPC_FILE_ fd, size_t memvec_entries, struct upc_shared_memvec const* memvec,             \
      size_t filevec_entries, struct upc_filevec const* filevec, upc_flag_t flags);                \
  MOB_UPC_API result upc_all_fwrite_list_shared##suffix(                                           \
      MOB_UPC_FILE_ fd, size_t memvec_entries, struct upc_shared_memvec const* memvec,             \
      size_t filevec_entries, struct upc_filevec const* filevec, upc_flag_t flags);
MOB_UPC_TRANSFERS_(upc_off_t, )
MOB_UPC_TRANSFERS_(void, _async)
#undef MOB_UPC_TRANSFERS_

/** Waits for the transfer that was started. @return its number of bytes */
MOB_UPC_API upc_off_t upc_all_fwait_async(MOB_UPC_FILE_ fd);
/** Sets `*flag` to 1 if the transfer that was started is complete, else 0. @return as fwait */
MOB_UPC_API upc_off_t upc_all_ftest_async(MOB_UPC_FILE_ fd, int* flag);

#ifdef __cplusplus
}
#endif
#endif

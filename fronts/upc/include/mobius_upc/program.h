/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_PROGRAM_H
#define MOBIUS_UPC_PROGRAM_H

/**
 * @file
 * What a translated file tells the library: its shared objects, its start. And barriers.
 *
 * A translated file has one mob_upc_unit_t, and a constructor that registers it:
 *
 *     static uint64_t offset_of_a;
 *     static const mob_upc_object_t objects[] = {
 *       {"a", &offset_of_a, sizeof(int), 1, 10, MOB_UPC_TIMES_THREADS, 0, NULL, 0, "p.upc:3"}};
 *     static mob_upc_unit_t unit = {MOB_UPC_UNIT_VERSION, 0, "p.upc", objects, 1, NULL, NULL};
 *     __attribute__((constructor)) static void join(void) { mob_upc_register(&unit); }
 *
 * The library has the main() of the program. It joins the job, gives every shared object a place,
 * writes initial values, calls each file's set_up(), waits for all threads, and calls
 * mob_upc_main(), which is the program's main() under another name, with its parameters. The symbol
 * must have default visibility, since the library finds it. There is no declaration here, because
 * programs give main() different types. A return from it, or exit(), waits for all threads.
 *
 * A program whose main() is in C calls mob_upc_start() first. */

#include <mobius_upc/pointer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of an object. */
enum {
  MOB_UPC_TIMES_THREADS = 1, /**< `count` is to be multiplied by the number of threads */
  MOB_UPC_EXTERN = 2,        /**< declared here, defined in another file */
  MOB_UPC_STATIC = 4,        /**< internal linkage: other files may have another of this name */
  MOB_UPC_COMMON = 8         /**< a tentative definition: other files may have one, too */
};

enum { MOB_UPC_UNIT_VERSION = 1 /**< version of the structures here */ };

/** A shared object of a translated file. */
typedef struct mob_upc_object {
  const char* name;
  uint64_t* offset;       /**< out, before set_up(): its offset in each shared area */
  uint64_t element_bytes; /**< size of an element, of the innermost array's type */
  uint64_t block;         /**< elements in a block; 0: indefinite, all of it in thread 0 */
  uint64_t count;         /**< number of elements, 1 for a scalar; 0 for `extern shared T a[]` */
  uint32_t flags;         /**< MOB_UPC_TIMES_THREADS … */
  uint32_t alignment;     /**< of the elements; 0: that of the largest scalar */
  const void* initial;    /**< values of the first elements, in order; null: zeros */
  uint64_t initial_bytes; /**< their size; all that follows is 0 */
  const char* where;      /**< "file:line" for messages; may be null */
} mob_upc_object_t;

/** What a translated file registers. It must stay; the library writes `next`. */
typedef struct mob_upc_unit {
  uint32_t version;        /**< MOB_UPC_UNIT_VERSION */
  uint32_t static_threads; /**< THREADS of the compilation; 0: any number */
  const char* file;        /**< for messages */
  const mob_upc_object_t* objects;
  uint64_t object_count;
  /**
   * Called in every thread when all objects have their places, before the program's main(), in the
   * order of registration: initial values that are not constant. A barrier follows the last. Each
   * thread writes its own variables; one of them, mob_upc_mythread() == 0, the shared ones. May be
   * null.
   */
  void (*set_up)(void);
  struct mob_upc_unit* next;
} mob_upc_unit_t;

/**
 * Registers a file. Called by a constructor of the file, or of a library before the program starts.
 *
 * @param unit  the caller owns it; must stay as it is
 *
 * Local, does not block. Not thread-safe.
 */
MOB_UPC_API void mob_upc_register(mob_upc_unit_t* unit);

/**
 * Joins the job and does everything that comes before main(). Called by the library's main(); a
 * program with a main() of its own, in C, calls it first. A second call does nothing. Any failure
 * ends the job with a message.
 *
 * Collective over all threads, blocks.
 */
MOB_UPC_API void mob_upc_start(void);

/**
 * upc_notify, upc_wait and upc_barrier, each without and with a value. `where` is "file:line" for
 * messages, or null. Values that differ, a second notify without a wait, and a wait without a
 * notify end the job with a message.
 */
MOB_UPC_API void mob_upc_notify(const char* where);
/** upc_notify value. */
MOB_UPC_API void mob_upc_notify_value(int value, const char* where);
/** upc_wait: blocks until all threads have notified. */
MOB_UPC_API void mob_upc_wait(const char* where);
/** upc_wait value. */
MOB_UPC_API void mob_upc_wait_value(int value, const char* where);
/** upc_barrier: a notify and a wait. */
MOB_UPC_API void mob_upc_barrier(const char* where);
/** upc_barrier value. */
MOB_UPC_API void mob_upc_barrier_value(int value, const char* where);

/**
 * Ends all threads: upc_global_exit(). Does not return, does not wait.
 *
 * @param status  exit status of the job
 */
MOB_UPC_API __attribute__((noreturn)) void mob_upc_global_exit(int status);

#ifdef __cplusplus
}
#endif
#endif

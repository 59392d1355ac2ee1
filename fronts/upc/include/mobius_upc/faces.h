/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_FACES_H
#define MOBIUS_UPC_FACES_H

/**
 * @file
 * The headers of the language have two faces: programs in UPC see pointers to shared memory,
 * programs in C the structure that such a pointer is translated to. */

#include <mobius_upc/pointer.h>

#ifdef __UPC__
#define MOB_UPC_SHARED_(T) shared T*
/* A lock: an object that only pointers name. */
typedef shared struct upc_lock_struct upc_lock_t;
#define MOB_UPC_LOCK_ upc_lock_t*
#else
#define MOB_UPC_SHARED_(T) mob_upc_ptr_t
#define MOB_UPC_LOCK_ mob_upc_ptr_t
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARMCIX_H
#define MOBIUS_ARMCIX_H

/**
 * @file Extensions of ARMCI-MPI to ARMCI: groups by colour, and any number of sets of mutexes.
 */

#include <armci.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a group of the members of `parent` that pass the same colour, ordered by key; collective
 * over `parent`.
 */
int ARMCIX_Group_split(ARMCI_Group* parent, int color, int key, ARMCI_Group* group);
/** Makes a group of the same members; collective over `parent`. */
int ARMCIX_Group_dup(ARMCI_Group* parent, ARMCI_Group* group);

typedef struct armcix_mutex_hdl_s* armcix_mutex_hdl_t;

/** As ARMCI_Create_mutexes(), in the members of a group. Null if there is no memory. */
armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group* group);
int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t mutexes);
/** `proc` is a rank in the job. */
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t mutexes, int mutex, int proc);
/** @return 0 if the mutex was acquired, else 1. Does not wait. */
int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t mutexes, int mutex, int proc);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t mutexes, int mutex, int proc);

/** Makes progress: serves requests of other processes to the caller. */
void ARMCIX_Progress(void);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * <armci_msg.h>, unless the program has a message.h of its own in a folder that is searched later:
 * every program that is given Möbius' common folder of headers finds this file.
 */

#pragma GCC system_header

#ifdef __has_include_next
#if __has_include_next(<message.h>)
#define MOBIUS_ARMCI_OTHER_MESSAGE_H 1
#endif
#endif

#ifdef MOBIUS_ARMCI_OTHER_MESSAGE_H
#include_next <message.h>
#else
#include <armci_msg.h>
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MOBIUS_H
#define MOBIUS_MOBIUS_H

/**
 * @file
 * The whole public interface of Möbius for C99 and C++20.
 *
 * @code
 * #include <mobius/mobius.h>
 * @endcode
 */

#include <mobius/access.h>
#include <mobius/atomic.h>
#include <mobius/collective.h>
#include <mobius/context.h>
#include <mobius/counter.h>
#include <mobius/dynamic.h>
#include <mobius/epoch.h>
#include <mobius/expose.h>
#include <mobius/failure.h>
#include <mobius/heap.h>
#include <mobius/job.h>
#include <mobius/lock.h>
#include <mobius/memory.h>
#include <mobius/message.h>
#include <mobius/rma.h>
#include <mobius/schedule.h>
#include <mobius/status.h>
#include <mobius/strided.h>
#include <mobius/team.h>
#include <mobius/threads.h>
#include <mobius/transfer.h>
#include <mobius/types.h>
#include <mobius/wait.h>

#endif

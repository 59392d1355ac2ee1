/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MOBIUS_HPP
#define MOBIUS_MOBIUS_HPP

/**
 * @file
 * The whole interface of Möbius for C++20: the C interface and, over it, namespace `mob`: owners,
 * typed pointers and buffers, handlers that are any callable objects, and errors as exceptions.
 * Headers only. Call everything else as in C, with `mob::check(…)`.
 *
 * @code
 * #include <mobius/mobius.hpp>
 * @endcode */

#include <mobius/array.hpp>
#include <mobius/bridge.hpp>
#include <mobius/counter.hpp>
#include <mobius/error.hpp>
#include <mobius/job.hpp>
#include <mobius/message.hpp>
#include <mobius/mobius.h>
#include <mobius/pointer.hpp>
#include <mobius/team.hpp>
#include <mobius/types.hpp>
#include <mobius/wait.hpp>

#endif

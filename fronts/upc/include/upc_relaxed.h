/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * UPC 1.3, §7.1: references without a qualifier are relaxed. */
#ifndef UPC_RELAXED_H
#define UPC_RELAXED_H
#ifdef __UPC__
#pragma upc relaxed
#endif
#include <upc.h>
#endif

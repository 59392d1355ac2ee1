/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * UPC 1.3, §7.1: references without a qualifier are strict. */
#ifndef UPC_STRICT_H
#define UPC_STRICT_H
#ifdef __UPC__
#pragma upc strict
#endif
#include <upc.h>
#endif

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Symmetric objects: blocks of the heap (heap.cpp), and static variables of the program and of the
// libraries that it links (statics.cpp).

#include <mobius/mobius.h>

#include <cstddef>

namespace mobius::shmem {

// Return the address of an object in PE `pe`; null if it is in no block, or in no such variable.
char* find_in_heap(const void* here, int pe);
char* find_in_statics(const void* here, int pe);

// Its distance from the start of the heap, or of the variables of its program or library. False if
// it lies elsewhere.
bool offset_in_heap(const void* here, size_t* offset);
bool offset_in_statics(const void* here, size_t* offset);

// Free a block of the heap, or change its size, as mob_heap_free() and mob_heap_realloc() do: all
// PEs get an error if `block` is not the address of a block.
mob_status_t free_block(void* block);
mob_status_t resize_block(void* block, size_t bytes, void** result);

}  // namespace mobius::shmem

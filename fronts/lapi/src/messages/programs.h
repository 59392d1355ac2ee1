// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Data gather/scatter programs: descriptions of the layout of data in memory, and copies by them.

#include <lapi.h>

namespace lapi {

// Whether it is live: registered, and not unregistered as often as it was registered and reserved.
bool is_program(const void* handle);

int register_program(const char* call, const lapi_dgsp_descr_t* description, void** handle);
int reserve_program(const char* call, void* handle);
int release_program(const char* call, void* handle);

// gather() and scatter(): copy `bytes` of the packed form, from its byte `from` on, out of memory
// at `base` or back.
void gather(const void* handle, const void* base, unsigned long bytes, unsigned long from,
            char* packed);
void scatter(const void* handle, const char* packed, unsigned long bytes, unsigned long from,
             void* base);

}  // namespace lapi

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Return codes, and the text of each thread's last error.

#include <lapi.h>

namespace lapi {

// Records the text, with the call's name, for LAPI_Msg_string(); returns `code`.
[[gnu::cold, gnu::format(printf, 3, 4)]] int fail(const char* call, int code, const char* format,
                                                  ...);

// The general text of a code; null if it is not a code of LAPI.
const char* text_of(int code);
const char* name_of(int code);

}  // namespace lapi

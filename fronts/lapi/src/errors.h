// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Return codes, and the text of the last error of each thread.

#include <lapi.h>

namespace lapi {

// Records what was wrong, where, for LAPI_Msg_string(); returns `code`.
[[gnu::cold, gnu::format(printf, 3, 4)]] int fail(const char* call, int code, const char* format,
                                                  ...);

// The text for a code, without what is recorded; null if it is not one of LAPI's.
const char* text_of(int code);
const char* name_of(int code);

}  // namespace lapi

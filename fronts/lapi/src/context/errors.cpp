// SPDX-License-Identifier: BSD-3-Clause
#include "context/errors.h"

#include <cstdarg>
#include <cstdio>

#include "context/context.h"

namespace lapi {
namespace {

struct Error {
  const char* name;
  const char* text;
};

constexpr Error kErrors[] = {
#define LAPI_ERROR_ROW_(name, text) {"LAPI_ERR_" #name, text},
    LAPI_FOR_EACH_ERROR(LAPI_ERROR_ROW_)
#undef LAPI_ERROR_ROW_
};

const Error* find(int code) {
  if (code <= LAPI_ERR_BASE_ || code >= LAPI_ERR_END_) return nullptr;
  return &kErrors[code - LAPI_ERR_BASE_ - 1];
}

struct Last {
  int code = LAPI_SUCCESS;
  char text[LAPI_MAX_ERR_STRING - 160] = {};
};
thread_local Last last;

}  // namespace

int fail(const char* call, int code, const char* format, ...) {
  last.code = code;
  const int begun = std::snprintf(last.text, sizeof last.text, "%s: ", call);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last.text + begun, sizeof last.text - static_cast<size_t>(begun), format,
                 arguments);
  va_end(arguments);
  return code;
}

const char* text_of(int code) {
  const Error* found = find(code);
  return found != nullptr ? found->text : nullptr;
}

const char* name_of(int code) {
  const Error* found = find(code);
  return found != nullptr ? found->name : "LAPI_SUCCESS";
}

}  // namespace lapi

extern "C" int PLAPI_Msg_string(int error_code, void* buf) {
  if (buf == nullptr) {
    return lapi::fail("LAPI_Msg_string", LAPI_ERR_RET_PTR_NULL, "the buffer is null");
  }
  auto* text = static_cast<char*>(buf);
  if (error_code == LAPI_SUCCESS) {
    std::snprintf(text, LAPI_MAX_ERR_STRING, "LAPI_SUCCESS: done");
    return LAPI_SUCCESS;
  }
  const char* what = lapi::text_of(error_code);
  if (what == nullptr) {
    std::snprintf(text, LAPI_MAX_ERR_STRING, "%d is not a return code of LAPI", error_code);
    return lapi::fail("LAPI_Msg_string", LAPI_ERR_CODE_UNKNOWN, "%d is not a return code of LAPI",
                      error_code);
  }
  const bool has_detail = lapi::last.code == error_code;
  std::snprintf(text, LAPI_MAX_ERR_STRING, "%s: %s%s%s%s", lapi::name_of(error_code), what,
                has_detail ? " (" : "", has_detail ? lapi::last.text : "", has_detail ? ")" : "");
  return LAPI_SUCCESS;
}
LAPI_TWIN(Msg_string)

// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/first_error.h"

#include <cstring>
#include <new>

#include "base/status.h"

namespace mobius::engine {

void FirstError::keep_text(mob_status_t status) {
  const char* const text = mob_last_error();
  const size_t bytes = std::strlen(text) + 1;
  status_ = status;
  text_.reset(new (std::nothrow) char[bytes]);
  if (text_ != nullptr) std::memcpy(text_.get(), text, bytes);
}

mob_status_t FirstError::tell_text() const {
  return base::fail(
      status_, "%s",
      text_ != nullptr ? text_.get() : "there was no memory left to say what went wrong");
}

}  // namespace mobius::engine

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Values and instructions in the form in which PMIx takes and gives them.

#include <pmix.h>

#include <cstdlib>
#include <cstring>

namespace mobius::job::pmix {

inline pmix_value_t value_of(bool truth) {
  pmix_value_t value{};
  value.type = PMIX_BOOL;
  value.data.flag = truth;
  return value;
}

inline pmix_value_t scope_value(pmix_scope_t scope) {
  pmix_value_t value{};
  value.type = PMIX_SCOPE;
  value.data.scope = scope;
  return value;
}

// PMIx reads the text and does not change it.
inline pmix_value_t text_value(const char* text) {
  pmix_value_t value{};
  value.type = PMIX_STRING;
  value.data.string = const_cast<char*>(text);
  return value;
}

inline pmix_info_t instruction(const char* key, const pmix_value_t& value) {
  pmix_info_t info{};
  std::strncpy(info.key, key, PMIX_MAX_KEYLEN);
  info.value = value;
  return info;
}

// A value that PMIx has given.
class Value {
 public:
  Value() = default;
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  // Of the types that are used here, these three own memory.
  ~Value() {
    if (value_ == nullptr) return;
    if (value_->type == PMIX_STRING) std::free(value_->data.string);
    if (value_->type == PMIX_BYTE_OBJECT) std::free(value_->data.bo.bytes);
    if (value_->type == PMIX_PROC) std::free(value_->data.proc);
    std::free(value_);
  }

  pmix_value_t** out() { return &value_; }
  const pmix_value_t* operator->() const { return value_; }
  bool is(pmix_data_type_t type) const { return value_ != nullptr && value_->type == type; }

 private:
  pmix_value_t* value_ = nullptr;
};

}  // namespace mobius::job::pmix

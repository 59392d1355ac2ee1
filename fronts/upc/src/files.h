// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Files of upc_io.h, as one thread has them (files.cpp), and what their transfers move
// (file_transfers.cpp).

#include <upc_io.h>

#include <string>
#include <utility>
#include <vector>

#include "front.h"

namespace mobius::upc {

struct File {
  int descriptor = -1;
  int flags = 0;
  std::string name;
  // The common pointer is the same in all threads, because all do the same with it.
  upc_off_t place = 0;
  std::vector<std::pair<std::string, std::string>> hint_texts;
  std::vector<upc_hint> hints;  // what points to them
  bool has_async = false;
  upc_off_t async_result = 0;
  int async_error = 0;

  bool is_common() const { return (flags & UPC_COMMON_FP) != 0; }
};

// Returns the caller's part of an open file. Ends the job if it is none.
File& find_file(mob_upc_ptr_t fd, const char* call);

// Makes one outcome of what each thread got: -1, with errno, if one of them failed.
int common_outcome(int result, const char* call);

}  // namespace mobius::upc

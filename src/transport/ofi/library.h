// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// libfabric, loaded when it is first needed and never unloaded, because its providers start threads
// and leave handlers behind. The inline functions of its headers go through tables of the objects
// that these few functions return.

#include <mobius/status.h>

#include <rdma/fabric.h>

#include <memory>
#include <string>

namespace mobius::transport::ofi {

// The oldest API version that has all we use; we request it from every newer library too.
inline constexpr uint32_t kApiVersion = FI_VERSION(1, 17);

struct Library {
  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_strerror) strerror = nullptr;
  decltype(&fi_tostr) tostr = nullptr;
  uint32_t version = 0;

  std::string version_text() const;  // "libfabric 1.17"
  std::string text_of(const void* value,
                      fi_type type) const;     // returns a copy: fi_tostr is not reentrant
  std::string text_of_error(int error) const;  // for a positive or negative code
};

// MOB_ERR_SYSTEM if it cannot be loaded or is too old; the text says what to install.
mob_status_t load_library(const Library** library);

struct FreeInfo {
  const Library* library = nullptr;
  void operator()(fi_info* info) const { library->freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace mobius::transport::ofi

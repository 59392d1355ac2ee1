// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/status.h"
#include "os/process/signals.h"

namespace mobius::transport::ofi {
namespace {

using base::fail;

// Names the packages of common distributions.
constexpr const char* kInstall =
    "install libfabric 1.17 or newer (Debian, Ubuntu: apt-get install libfabric1; Fedora: dnf "
    "install libfabric) on every host";

template <typename Function>
bool find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

mob_status_t load(Library* library) {
  // A library that libfabric links with (PSM2, in Debian) installs handlers for crashes, which
  // leave files in the program's folder.
  const os::SignalHandlersKept kept;
  void* handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return fail(MOB_ERR_SYSTEM,
                "a job on several hosts needs libfabric, which did not load (%s): %s",
                reason != nullptr ? reason : "no reason given", kInstall);
  }
  decltype(&fi_version) version = nullptr;
  if (!find(handle, "fi_getinfo", &library->getinfo) ||
      !find(handle, "fi_freeinfo", &library->freeinfo) ||
      !find(handle, "fi_dupinfo", &library->dupinfo) ||
      !find(handle, "fi_fabric", &library->fabric) ||
      !find(handle, "fi_strerror", &library->strerror) ||
      !find(handle, "fi_tostr", &library->tostr) || !find(handle, "fi_version", &version)) {
    return fail(MOB_ERR_SYSTEM, "libfabric.so.1 is not libfabric: %s; %s", dlerror(), kInstall);
  }
  library->version = version();
  if (FI_VERSION_LT(library->version, kApiVersion)) {
    return fail(MOB_ERR_SYSTEM, "%s is too old: %s", library->version_text().c_str(), kInstall);
  }
  return MOB_OK;
}

}  // namespace

std::string Library::version_text() const {
  return "libfabric " + std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::string Library::text_of(const void* value, fi_type type) const {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const char* text = tostr(value, type);
  return text != nullptr ? text : "";
}

std::string Library::text_of_error(int error) const {
  const char* text = strerror(std::abs(error));
  return text != nullptr ? text : "error " + std::to_string(error);
}

mob_status_t load_library(const Library** library) {
  static std::mutex mutex;
  static Library loaded;
  static bool done = false;
  const std::lock_guard lock(mutex);
  if (!done) {
    if (const mob_status_t status = load(&loaded)) return status;
    done = true;
  }
  *library = &loaded;
  return MOB_OK;
}

}  // namespace mobius::transport::ofi

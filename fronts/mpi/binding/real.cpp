// SPDX-License-Identifier: BSD-3-Clause
#include "binding/real.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mobius::mpi {
namespace {

// The library of the MPI that is loaded, for processes that loaded it apart from their other
// libraries, as Python does.
void* loaded_mpi() {
  std::string path;
  const auto look = [](dl_phdr_info* library, size_t /*bytes*/, void* data) {
    const std::string_view name = library->dlpi_name;
    const std::string_view file = name.substr(name.rfind('/') + 1);
    if (!file.starts_with("libmpi.so") && !file.starts_with("libmpi_abi.so") &&
        !file.starts_with("libmpich.so")) {
      return 0;
    }
    *static_cast<std::string*>(data) = name;
    return 1;
  };
  if (dl_iterate_phdr(look, &path) == 0) return nullptr;
  return dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
}

}  // namespace

void* look_for_function(const char* name) {
  if (void* next = dlsym(RTLD_NEXT, name)) return next;
  void* library = loaded_mpi();
  return library != nullptr ? dlsym(library, name) : nullptr;
}

void* find_function(const char* name) {
  if (void* found = look_for_function(name)) return found;
  std::fprintf(stderr,
               "libmobius_" MOBIUS_MPI_FRONT
               ": the MPI of this process has no %s; "
               "is it the MPI that this library is for, and a shared library?\n",
               name);
  std::abort();
}

#if defined(MOBIUS_MPI_OMPI)
// A program that is linked with the MPI may have a copy of its own, which all use then.
void* find_object(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  void* library = loaded_mpi();
  return library != nullptr ? dlsym(library, name) : nullptr;
}
#endif

}  // namespace mobius::mpi

// SPDX-License-Identifier: BSD-3-Clause
#include "binding/program_imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace mobius::mpi {
namespace {

constexpr std::string_view kMakers[] = {"win_create", "win_allocate"};

// MPI_Win_create, PMPI_Win_allocate_shared, mpi_win_create_, mpi_win_allocate_cptr_f08_, …
bool makes_windows(std::string_view name) {
  if (name.starts_with('P') || name.starts_with('p')) name.remove_prefix(1);
  if (!name.starts_with("MPI_") && !name.starts_with("mpi_")) return false;
  name.remove_prefix(4);
  return std::ranges::any_of(kMakers,
                             [&](std::string_view maker) {
                               return name.size() >= maker.size() &&
                                      strncasecmp(name.data(), maker.data(), maker.size()) == 0;
                             }) &&
         !name.substr(4).starts_with("create_keyval") && !name.substr(4).starts_with("create_err");
}

struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  size_t count = 0;
};

// Those without a definition come first, before what the hash table has.
Symbols undefined_symbols(const dl_phdr_info& object) {
  Symbols symbols;
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  }
  const auto address = [&](const ElfW(Dyn) & at) {
    // glibc has made addresses of the program's offsets already.
    return at.d_un.d_ptr < object.dlpi_addr ? at.d_un.d_ptr + object.dlpi_addr : at.d_un.d_ptr;
  };
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) {
      symbols.table = reinterpret_cast<const ElfW(Sym)*>(address(*entry));
    } else if (entry->d_tag == DT_STRTAB) {
      symbols.names = reinterpret_cast<const char*>(address(*entry));
    } else if (entry->d_tag == DT_GNU_HASH) {
      symbols.count =
          std::max<size_t>(symbols.count, reinterpret_cast<const uint32_t*>(address(*entry))[1]);
    } else if (entry->d_tag == DT_HASH) {
      symbols.count = reinterpret_cast<const uint32_t*>(address(*entry))[1];
    }
  }
  return symbols;
}

int look_at_program(dl_phdr_info* object, size_t /*bytes*/, void* found) {
  const Symbols symbols = undefined_symbols(*object);
  if (symbols.table != nullptr && symbols.names != nullptr) {
    for (size_t i = 1; i < symbols.count; ++i) {
      const ElfW(Sym) & symbol = symbols.table[i];
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
      if (makes_windows(symbols.names + symbol.st_name)) *static_cast<bool*>(found) = true;
    }
  }
  return 1;  // the program is the first object
}

struct LoadedMpi {
  const char* front;
  const char* name;
};

// Which of them is loaded; null where none is known.
LoadedMpi loaded_kind() {
  LoadedMpi kind{nullptr, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* data) {
        const std::string_view path = library->dlpi_name;
        const std::string_view file = path.substr(path.rfind('/') + 1);
        auto* found = static_cast<LoadedMpi*>(data);
        if (file.starts_with("libmpi_abi.so")) {
          *found = {"mpiabi", "one with the standard ABI"};
        } else if (file.starts_with("libmpi.so.12") || file.starts_with("libmpich.so")) {
          *found = {"mpich", "MPICH or one of its kin"};
        } else if (file.starts_with("libmpi.so.40") || file.starts_with("libopen-pal.so")) {
          *found = {"ompi", "Open MPI"};
        } else {
          return 0;
        }
        return 1;
      },
      &kind);
  return kind;
}

}  // namespace

bool program_makes_windows() {
  bool found = false;
  dl_iterate_phdr(look_at_program, &found);
  return found;
}

void check_mpi() {
  const LoadedMpi kind = loaded_kind();
  if (kind.front == nullptr || std::strcmp(kind.front, MOBIUS_MPI_FRONT) == 0) return;
  std::fprintf(stderr,
               "libmobius_" MOBIUS_MPI_FRONT
               ": the MPI of this program is %s; preload or link "
               "libmobius_%s instead\n",
               kind.name, kind.front);
  _exit(1);
}

}  // namespace mobius::mpi

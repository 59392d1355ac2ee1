// SPDX-License-Identifier: BSD-3-Clause

// Static variables as symmetric objects. The writable data of the program, and of each library that
// is not the system's, moves into shared memory (MOB_EXPOSE_REMAP). The loader puts it at different
// addresses in different processes, so all PEs exchange where theirs lies; programs and libraries
// are told apart by their build-id, else by their name and layout.

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "front.h"
#include "symmetric.h"

namespace mobius::shmem {
namespace {

// The data of a program or library, as all PEs learn of it.
struct Found {
  uint64_t id;
  uint64_t start;
  uint64_t bytes;
};

// Moving pages takes memory for all of them, used or not, and a second or more per gigabyte.
constexpr uint64_t kMostMovedBytes = uint64_t{256} << 20;

constexpr ptrdiff_t kNowhere = std::numeric_limits<ptrdiff_t>::min();

struct Statics {
  uintptr_t start = 0;
  size_t bytes = 0;
  std::vector<ptrdiff_t> offsets;  // for each PE: its address less the caller's
};

std::vector<Statics> statics;
bool is_exposed = false;

// FNV-1a.
class Hash {
 public:
  void add(const void* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      value_ = (value_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

// The build-id among the notes of a program or library.
void add_build_id(const char* notes, size_t bytes, Hash* hash) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = (note.n_namesz + 3u) & ~size_t{3};
    const size_t all = sizeof note + name + ((note.n_descsz + 3u) & ~size_t{3});
    if (all > bytes) return;
    if (note.n_type == NT_GNU_BUILD_ID) hash->add(notes + sizeof note + name, note.n_descsz);
    notes += all;
    bytes -= all;
  }
}

// Libraries of the system keep no variables of the program, and some cannot have theirs moved.
bool is_of_system(std::string_view path) {
  for (const std::string_view folder : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"}) {
    if (path.starts_with(folder)) return true;
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view ours : {"libmobius", "linux-vdso", "ld-linux"}) {
    if (name.starts_with(ours)) return true;
  }
  return false;
}

int visit(dl_phdr_info* object, size_t, void* all) {
  const std::string_view path = object->dlpi_name != nullptr ? object->dlpi_name : "";
  // The program itself is the first, and has no name.
  auto& found = *static_cast<std::vector<Found>*>(all);
  if (!path.empty() && is_of_system(path)) return 0;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  Hash hash;
  hash.add(path.data() + path.rfind('/') + 1, path.size() - (path.rfind('/') + 1));
  uintptr_t start = 0;
  uintptr_t end = 0;
  uintptr_t read_only_end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    const uintptr_t address = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO) read_only_end = address + header.p_memsz;
    if (header.p_type == PT_NOTE) {
      add_build_id(reinterpret_cast<const char*>(address), header.p_memsz, &hash);
    }
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
      start = address;
      end = address + header.p_memsz;
      const uint64_t layout[] = {header.p_vaddr, header.p_memsz};
      hash.add(layout, sizeof layout);
    }
  }
  start = std::max(start, (read_only_end + page - 1) & ~(page - 1));
  if (start < end) found.push_back({hash.value(), start, end - start});
  return 0;
}

void expose(const Found& each, const char* call) {
  mob_exposed_t exposed = nullptr;
  void* const start = reinterpret_cast<void*>(each.start);
  // If the pages are not moved, the kernel copies each access.
  if (each.bytes <= kMostMovedBytes &&
      mob_expose(start, each.bytes, MOB_EXPOSE_REMAP, &exposed) == MOB_OK) {
    return;
  }
  check(mob_expose(start, each.bytes, 0, &exposed), call);
}

// Computes the offset of each PE's copy of `mine` from the caller's; kNowhere in a PE that runs
// another program.
std::vector<ptrdiff_t> compare(const Found& mine, const std::vector<Found>& all, size_t most) {
  std::vector<ptrdiff_t> offsets;
  for (size_t first = 0; first < all.size(); first += most) {
    const auto* const begin = &all[first];
    const auto* const same =
        std::find_if(begin, begin + most, [&](const Found& each) { return each.id == mine.id; });
    offsets.push_back(same != begin + most ? static_cast<ptrdiff_t>(same->start - mine.start)
                                           : kNowhere);
  }
  return offsets;
}

const Statics* find(const void* here) {
  const auto address = reinterpret_cast<uintptr_t>(here);
  for (const Statics& each : statics) {
    if (address - each.start < each.bytes) return &each;
  }
  return nullptr;
}

}  // namespace

char* find_in_statics(const void* here, int pe) {
  const Statics* const found = find(here);
  if (found == nullptr) return nullptr;
  const ptrdiff_t offset = found->offsets[static_cast<size_t>(pe)];
  if (offset == kNowhere) return nullptr;
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(here) +
                                 static_cast<uintptr_t>(offset));
}

bool offset_in_statics(const void* here, size_t* offset) {
  const Statics* const found = find(here);
  if (found == nullptr) return false;
  *offset = reinterpret_cast<uintptr_t>(here) - found->start;
  return true;
}

namespace {

// The inlined calls find the variables of the program itself, if all PEs have them.
void tell_inlined_calls() {
  if (statics.empty()) return;
  const Statics& program = statics.front();
  for (const ptrdiff_t offset : program.offsets) {
    if (offset == kNowhere) return;
  }
  shmem_state_.statics = program.start;
  shmem_state_.statics_bytes = program.bytes;
  shmem_state_.statics_offsets = program.offsets.data();
}

// A PE seldom has more programs and libraries than this, so one exchange is mostly enough.
constexpr size_t kUsualObjects = 6;
struct Usual {
  uint64_t count;
  Found found[kUsualObjects];
};

// Returns what each PE has found, `*most` entries for each.
std::vector<Found> exchange(const std::vector<Found>& found, size_t* most, const char* call) {
  const auto pes = static_cast<size_t>(mob_size());
  Usual mine = {};
  mine.count = found.size();
  std::copy_n(found.begin(), std::min(found.size(), kUsualObjects), mine.found);
  std::vector<Usual> usual(pes);
  check(mob_allgather(MOB_TEAM_WORLD, &mine, usual.data(), sizeof mine), call);
  *most = 0;
  for (const Usual& each : usual) *most = std::max<size_t>(*most, each.count);
  std::vector<Found> all(*most * pes);
  if (*most > kUsualObjects) {
    std::vector<Found> padded = found;
    padded.resize(*most);
    check(mob_allgather(MOB_TEAM_WORLD, padded.data(), all.data(), *most * sizeof(Found)), call);
    return all;
  }
  for (size_t pe = 0; pe < pes; ++pe) {
    std::copy_n(usual[pe].found, *most, all.begin() + static_cast<ptrdiff_t>(pe * *most));
  }
  return all;
}

}  // namespace

// They stay exposed until the job ends, also for a program that initialises OpenSHMEM again.
// Returns when all PEs have come.
void open_statics(const char* call) {
  if (is_exposed) {
    tell_inlined_calls();
    check(mob_barrier(), call);
    return;
  }
  is_exposed = true;
  std::vector<Found> found;
  dl_iterate_phdr(visit, &found);
  for (const Found& each : found) expose(each, call);
  size_t most = 0;
  const std::vector<Found> all = exchange(found, &most, call);
  for (const Found& each : found) {
    statics.push_back({each.start, each.bytes, compare(each, all, most)});
  }
  tell_inlined_calls();
}

}  // namespace mobius::shmem

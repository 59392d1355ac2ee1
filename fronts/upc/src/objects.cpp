// SPDX-License-Identifier: BSD-3-Clause

// Static shared objects: the library does what a linker does for others. It finds the definition of
// each name, and gives it a place that is the same in all threads.

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "front.h"

namespace mobius::upc {
namespace {

mob_upc_unit_t* first_unit = nullptr;
mob_upc_unit_t** last_unit = &first_unit;

struct Placed {
  const mob_upc_object_t* definition = nullptr;  // null: only declared
  const mob_upc_object_t* declaration = nullptr;
  const mob_upc_object_t* sized = nullptr;  // one that gives the number of elements
  uint64_t offset = 0;
  bool is_apart = false;  // lies in memory of thread 0 alone
};

std::vector<Placed> placed;                          // in the order of registration
std::vector<std::pair<uint64_t*, size_t>> awaiting;  // the variables that get the offsets

// An object of indefinite layout lies in thread 0. The area of others has room for small ones only.
constexpr uint64_t kApartBytes = uint64_t{1} << 16;
constexpr uint64_t kLargestAlignment = 64;

const char* where(const mob_upc_object_t& object) {
  return object.where != nullptr ? object.where : "UPC program";
}

uint64_t all_elements(const mob_upc_object_t& object) {
  return object.count *
         ((object.flags & MOB_UPC_TIMES_THREADS) != 0 ? static_cast<uint64_t>(threads()) : 1);
}

uint64_t bytes_per_thread(const mob_upc_object_t& object) {
  const uint64_t elements = all_elements(object);
  if (object.block == 0) return elements * object.element_bytes;
  const uint64_t blocks = (elements + object.block - 1) / object.block;
  const auto all = static_cast<uint64_t>(threads());
  return (blocks + all - 1) / all * object.block * object.element_bytes;
}

void compare(const mob_upc_object_t& one, const mob_upc_object_t& other) {
  if (one.element_bytes != other.element_bytes || one.block != other.block) {
    die(where(other),
        "shared object '%s' has elements of %llu bytes in blocks of %llu here, and of %llu bytes "
        "in blocks of %llu at %s; give it one type in all files, best in a header",
        other.name, static_cast<unsigned long long>(other.element_bytes),
        static_cast<unsigned long long>(other.block),
        static_cast<unsigned long long>(one.element_bytes),
        static_cast<unsigned long long>(one.block), where(one));
  }
  if (one.count != 0 && other.count != 0 && all_elements(one) != all_elements(other)) {
    die(where(other), "shared object '%s' has %llu elements here, and %llu at %s", other.name,
        static_cast<unsigned long long>(all_elements(other)),
        static_cast<unsigned long long>(all_elements(one)), where(one));
  }
}

void merge(Placed* place, const mob_upc_object_t* object) {
  if (const mob_upc_object_t* before =
          place->sized != nullptr ? place->sized : place->declaration) {
    compare(*before, *object);
  }
  place->declaration = object;
  if (object->count != 0) place->sized = object;
  if ((object->flags & MOB_UPC_EXTERN) != 0) return;
  if (place->definition == nullptr ||
      ((place->definition->flags & MOB_UPC_COMMON) != 0 && (object->flags & MOB_UPC_COMMON) == 0)) {
    place->definition = object;
  } else if ((object->flags & MOB_UPC_COMMON) == 0) {
    die(where(*object), "shared object '%s' is defined here and at %s; declare it extern in one",
        object->name, where(*place->definition));
  }
}

void collect() {
  std::unordered_map<std::string_view, size_t> by_name;
  for (const mob_upc_unit_t* unit = first_unit; unit != nullptr; unit = unit->next) {
    if (unit->version != MOB_UPC_UNIT_VERSION) {
      die(unit->file, "compiled for another version of the library; compile it again");
    }
    if (unit->static_threads != 0 && unit->static_threads != static_cast<uint32_t>(threads())) {
      die(unit->file,
          "compiled for %u threads, but the job has %d: start it with mobius run -n %u, or compile "
          "it without --threads",
          unit->static_threads, threads(), unit->static_threads);
    }
    for (uint64_t i = 0; i < unit->object_count; ++i) {
      const mob_upc_object_t& object = unit->objects[i];
      size_t index = placed.size();
      if ((object.flags & MOB_UPC_STATIC) == 0) {
        index = by_name.try_emplace(object.name, index).first->second;
      }
      if (index == placed.size()) placed.emplace_back();
      merge(&placed[index], &object);
      awaiting.emplace_back(object.offset, index);
    }
  }
}

// All threads must run one program: their objects are the same.
void compare_threads(uint64_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const void* data, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
    }
  };
  add(&bytes, sizeof bytes);
  for (const Placed& each : placed) {
    add(each.declaration->name, std::strlen(each.declaration->name));
    add(&each.offset, sizeof each.offset);
  }
  uint64_t ends[] = {hash, ~hash};
  check(mob_allreduce(MOB_TEAM_WORLD, MOB_MAX, MOB_UINT64, ends, ends, 2), "start");
  if (ends[0] != ~ends[1]) {
    die("start", "the threads run programs with different shared objects; start one program");
  }
}

}  // namespace

Layout place_objects() {
  collect();
  uint64_t next = kObjectsOffset;
  for (Placed& each : placed) {
    if (each.definition == nullptr) {
      die(where(*each.declaration),
          "shared object '%s' is declared here, but no file of the program defines it",
          each.declaration->name);
    }
    // A definition may be `shared int a[]` of a common object, with its size elsewhere.
    const mob_upc_object_t& object = each.sized != nullptr ? *each.sized : *each.definition;
    const uint64_t bytes = bytes_per_thread(object);
    each.is_apart = object.block == 0 && bytes >= kApartBytes && threads() > 1;
    if (each.is_apart) continue;
    uint64_t alignment = object.alignment != 0 ? object.alignment : alignof(std::max_align_t);
    // Large objects begin at cache lines, so that the threads' parts of two do not share one.
    if (bytes >= kLargestAlignment) alignment = std::max(alignment, kLargestAlignment);
    next = (next + alignment - 1) / alignment * alignment;
    each.offset = next;
    next += std::max<uint64_t>(bytes, 1);
  }
  compare_threads(next);
  return {next - kObjectsOffset};
}

void give_large_objects() {
  std::vector<uint64_t> offsets(placed.size());
  bool is_any = false;
  for (size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i].is_apart) continue;
    is_any = true;
    if (mythread() != 0) continue;
    const mob_upc_object_t& object =
        placed[i].sized != nullptr ? *placed[i].sized : *placed[i].definition;
    void* block = nullptr;
    const uint64_t bytes = bytes_per_thread(object);
    if (mob_local_alloc(bytes, std::max<uint64_t>(object.alignment, kLargestAlignment), &block) !=
        MOB_OK) {
      die(where(object), "no memory for the %llu bytes of shared object '%s' in thread 0: %s",
          static_cast<unsigned long long>(bytes), object.name, mob_last_error());
    }
    std::memset(block, 0, bytes);
    note_object(block, bytes);
    offsets[i] = reinterpret_cast<uint64_t>(block) - mob_upc_origins_[0];
  }
  if (is_any) {
    check(mob_broadcast(MOB_TEAM_WORLD, 0, offsets.data(), offsets.size() * sizeof(uint64_t)),
          "start");
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed[i].is_apart) placed[i].offset = offsets[i];
    }
  }
  for (const auto& [variable, index] : awaiting) {
    if (variable != nullptr) *variable = placed[index].offset;
  }
}

void write_initial_values() {
  for (const Placed& each : placed) {
    const mob_upc_object_t& object = *each.definition;
    if (object.initial == nullptr) continue;
    const uint64_t block = object.block * object.element_bytes;
    const auto* const values = static_cast<const char*>(object.initial);
    if (block == 0) {
      if (mythread() == 0) {
        std::memcpy(mob_upc_local(each.offset), values, object.initial_bytes);
      }
      continue;
    }
    const auto all = static_cast<uint64_t>(threads());
    uint64_t at = static_cast<uint64_t>(mythread()) * block;
    for (uint64_t row = 0; at < object.initial_bytes; ++row, at += all * block) {
      std::memcpy(mob_upc_local(each.offset + row * block), values + at,
                  std::min(block, object.initial_bytes - at));
    }
  }
}

void run_set_ups() {
  for (const mob_upc_unit_t* unit = first_unit; unit != nullptr; unit = unit->next) {
    if (unit->set_up != nullptr) unit->set_up();
  }
}

}  // namespace mobius::upc

extern "C" void mob_upc_register(mob_upc_unit_t* unit) {
  unit->next = nullptr;
  *mobius::upc::last_unit = unit;
  mobius::upc::last_unit = &unit->next;
}

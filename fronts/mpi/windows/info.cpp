// SPDX-License-Identifier: BSD-3-Clause
#include "windows/info.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"

namespace mobius::mpi {
namespace {

// Of these get_info() returns what the program last said.
constexpr const char* kKept[] = {"no_locks",
                                 "accumulate_ordering",
                                 "accumulate_ops",
                                 "same_size",
                                 "same_disp_unit",
                                 "alloc_shared_noncontig",
                                 "mpi_accumulate_granularity",
                                 "mpi_minimum_memory_alignment",
                                 "mobius_schedule"};

std::optional<std::string> value_of(MPI_Info info, const char* key) {
  if (info == MPI_INFO_NULL) return {};
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  if (real::Info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &flag) != MPI_SUCCESS || flag == 0) {
    return {};
  }
  return value;
}

struct PolicyName {
  const char* name;
  mob_schedule_t schedule;
};

constexpr PolicyName kPolicies[] = {{"adaptive", MOB_SCHEDULE_ADAPTIVE},
                                    {"fifo", MOB_SCHEDULE_FIFO},
                                    {"interleave", MOB_SCHEDULE_INTERLEAVE},
                                    {"gets-first", MOB_SCHEDULE_GETS_FIRST},
                                    {"aggregate", MOB_SCHEDULE_AGGREGATE}};

void keep(Window* window, const char* key, const std::string& value) {
  for (auto& [known, old] : window->info) {
    if (known != key) continue;
    old = value;
    return;
  }
  window->info.emplace_back(key, value);
}

void heed(Window* window, std::string_view key, const std::string& value) {
  if (key == "accumulate_ordering") {
    window->orders_accumulates = value != "none";
  } else if (key == "mobius_schedule") {
    for (const PolicyName& policy : kPolicies) {
      if (value == policy.name) window->schedule = policy.schedule;
    }
  }
}

void apply_schedule(const Window& window) {
  if (window.memory != nullptr) {
    static_cast<void>(mob_mem_schedule(window.memory, window.schedule));
  }
  if (window.locked != nullptr) {
    static_cast<void>(mob_access_schedule(window.locked, window.schedule));
  }
  if (window.epoch != nullptr && window.access != Access::kStarted) {
    static_cast<void>(mob_epoch_schedule(window.epoch, window.schedule));
  }
}

}  // namespace

void read_info(MPI_Info info, Window* window) {
  if (info == MPI_INFO_NULL) return;
  window->is_changed = true;
  const mob_schedule_t before = window->schedule;
  for (const char* key : kKept) {
    const std::optional<std::string> value = value_of(info, key);
    if (!value) continue;
    keep(window, key, *value);
    heed(window, key, *value);
  }
  if (window->schedule != before) apply_schedule(*window);
}

bool asks_for_parts_apart(MPI_Info info) {
  return value_of(info, "alloc_shared_noncontig") == "true";
}

size_t asked_alignment(MPI_Info info) {
  const std::optional<std::string> value = value_of(info, "mpi_minimum_memory_alignment");
  size_t bytes = 0;
  if (!value) return 0;
  std::from_chars(value->data(), value->data() + value->size(), bytes);
  return std::has_single_bit(bytes) && bytes <= (size_t{2} << 20) ? bytes : 0;
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Win_set_info)(MPI_Win win, MPI_Info info) {
  if (Window* window = find_window(win)) read_info(info, window);
  return real::Win_set_info(win, info);
}

MOBIUS_MPI_TWIN(Win_get_info)(MPI_Win win, MPI_Info* info) {
  const int result = real::Win_get_info(win, info);
  const Window* window = find_window(win);
  if (result != MPI_SUCCESS || window == nullptr) return result;
  for (const auto& [key, value] : window->info) {
    static_cast<void>(real::Info_set(*info, key.c_str(), value.c_str()));
  }
  return result;
}

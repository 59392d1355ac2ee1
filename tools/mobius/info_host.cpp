// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "info.h"
#include "job/launch/process/limits.h"
#include "job/launch/process/processors.h"
#include "os/memory/memfd.h"
#include "os/memory/memory_limits.h"

namespace mobius::command {
namespace {

// The text after "key :" in the first line of a file that starts with `key`.
std::string value_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::optional<uint64_t> number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// A list of processors in the kernel's notation: "0-3,8".
std::string list_text(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

Fact plain(std::string key, std::string label, const std::string& text) {
  return {std::move(key), std::move(label), text.empty() ? "unknown" : text,
          text.empty() ? Json(nullptr) : Json(text)};
}

Fact kernel() {
  utsname names{};
  uname(&names);
  return plain("kernel", "kernel",
               fmt::format("{} {} ({})", names.sysname, names.release, names.machine));
}

Fact processor_model() {
  std::string model = value_of("/proc/cpuinfo", "model name");
  if (model.empty()) model = value_of("/proc/cpuinfo", "Model");  // some ARM boards
  return plain("cpu", "CPU", model);
}

Fact processors() {
  const std::vector<int> allowed = launch::allowed_processors();
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return {
      "processors",
      "processors",
      fmt::format("{} allowed here ({}) of {} online", allowed.size(), list_text(allowed), online),
      {{"allowed", allowed}, {"online", online}}};
}

Fact caches() {
  const std::vector<int> allowed = launch::allowed_processors();
  const std::string folder =
      fmt::format("/sys/devices/system/cpu/cpu{}/cache/index", allowed.empty() ? 0 : allowed[0]);
  std::string text;
  Json values = Json::array();
  for (int index = 0;; ++index) {
    const std::string cache = folder + std::to_string(index);
    const std::optional<uint64_t> level = number(first_line(cache + "/level"));
    if (!level) break;
    const std::string type = first_line(cache + "/type");
    const std::string shared = first_line(cache + "/shared_cpu_list");
    const std::optional<uint64_t> kib = number(first_line(cache + "/size"));
    if (!kib) continue;
    const std::string name = fmt::format("L{}{}", *level,
                                         type == "Data"          ? "d"
                                         : type == "Instruction" ? "i"
                                                                 : "");
    text += fmt::format("{}{} {} (CPUs {})", text.empty() ? "" : ", ", name,
                        bytes_text(*kib * 1024), shared);
    values.push_back({{"name", name}, {"bytes", *kib * 1024}, {"shared_by", shared}});
  }
  if (text.empty()) text = "unknown: the kernel does not show them in /sys/devices/system/cpu";
  return {"caches", "caches", text, values};
}

Fact memory() {
  const uint64_t total = number(value_of("/proc/meminfo", "MemTotal")).value_or(0) * 1024;
  const os::AvailableMemory available = os::available_memory();
  return {"memory",
          "memory",
          fmt::format("{} available of {}{}{}", bytes_text(available.bytes), bytes_text(total),
                      available.limited_by.empty() ? "" : ", ", available.limited_by),
          {{"available_bytes", available.bytes}, {"total_bytes", total}}};
}

Fact overcommit() {
  const std::string mode = first_line("/proc/sys/vm/overcommit_memory");
  const char* meaning = mode == "0"   ? "heuristic: absurd requests are refused"
                        : mode == "1" ? "always: no request is refused, memory may run out in use"
                        : mode == "2" ? "strict: address space counts (vm.overcommit_ratio)"
                                      : "unknown";
  return {"overcommit", "overcommit", fmt::format("{} ({})", mode, meaning), mode};
}

// "always [madvise] never" -> "madvise"
std::string chosen(const std::string& choices) {
  const size_t open = choices.find('[');
  const size_t close = choices.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return choices.substr(open + 1, close - open - 1);
}

Fact huge_pages() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  const std::string own = chosen(first_line(folder + "enabled"));
  const std::string shared = os::shared_huge_pages();
  if (own.empty()) {
    return {"huge_pages", "huge pages", "none: the kernel has no transparent huge pages", nullptr};
  }
  return {"huge_pages",
          "huge pages",
          fmt::format("{} for private memory, {} for shared memory "
                      "(/sys/kernel/mm/transparent_hugepage/shmem_enabled)",
                      own, shared.empty() ? "none" : shared),
          {{"private", own}, {"shared", shared}}};
}

// How many numbers a list in the kernel's notation has: "0-3,8" has 5.
size_t count_of(const std::string& list) {
  size_t count = 0;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string piece = list.substr(at, end - at);
    const std::optional<uint64_t> first = number(piece);
    const size_t dash = piece.find('-');
    const std::optional<uint64_t> last =
        dash == std::string::npos ? first : number(piece.substr(dash + 1));
    if (first && last && *last >= *first) count += *last - *first + 1;
    at = end + 1;
  }
  return count;
}

std::string list_of_nodes() { return first_line("/sys/devices/system/node/has_memory"); }

Fact memory_nodes() {
  const std::string list = list_of_nodes();
  const size_t nodes = count_of(list);
  std::string text = "unknown: the kernel does not show them in /sys/devices/system/node";
  if (nodes == 1) text = "1: all memory is equally near";
  if (nodes > 1) {
    text = fmt::format("{} ({}); see first touch below", nodes, list);
  }
  return {"memory_nodes", "NUMA nodes", text, {{"count", nodes}, {"list", list}}};
}

// The group that allows least: this process' own, or one above it.
Fact memory_group() {
  const os::GroupLimit group = os::tightest_group();
  if (group.limit_bytes == UINT64_MAX) {
    return {"control_group", "control group", "sets no limit on memory", nullptr};
  }
  return {"control_group",
          "control group",
          fmt::format("{} of memory for {}, of which {} are left", bytes_text(group.limit_bytes),
                      group.folder, bytes_text(group.room_bytes)),
          {{"group", group.folder},
           {"memory_bytes", group.limit_bytes},
           {"room_bytes", group.room_bytes}}};
}

Fact largest_job() {
  const launch::Limit limit = launch::process_limit(INT32_MAX);
  return {"largest_job",
          "largest job",
          fmt::format("{} processes now: {}", limit.processes, limit.reason),
          {{"processes", limit.processes}, {"reason", limit.reason}}};
}

}  // namespace

size_t memory_node_count() { return count_of(list_of_nodes()); }

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value >= 100 || value == static_cast<double>(static_cast<uint64_t>(value));
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kUnits[unit]);
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

Section build_facts() {
  Section section{"build", "Möbius", {}};
  section.facts.push_back(plain("version", "version", MOBIUS_COMMAND_VERSION));
#ifdef __clang__
  section.facts.push_back(plain("compiler", "compiler", __VERSION__));
#else
  section.facts.push_back(plain("compiler", "compiler", "GCC " __VERSION__));
#endif
  section.facts.push_back(plain("type", "build", MOBIUS_BUILD_TYPE));
#ifdef MOB_NO_CHECKS
  constexpr bool kChecks = false;
#else
  constexpr bool kChecks = true;
#endif
  section.facts.push_back({"checks", "checks",
                           kChecks ? "on: every public call checks its arguments"
                                   : "off: wrong arguments are not noticed (MOBIUS_CHECKS=OFF)",
                           kChecks});
  const std::string sanitizers = MOBIUS_SANITIZERS;
  section.facts.push_back({"sanitizers", "sanitizers",
                           sanitizers.empty() ? "none" : sanitizers + ": times mean nothing",
                           sanitizers});
  return section;
}

Section host_facts() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return {"host",
          "Host",
          {plain("name", "name", name), kernel(), processor_model(), processors(), caches(),
           memory(), memory_nodes(), memory_group(), overcommit(), huge_pages(), largest_job()}};
}

}  // namespace mobius::command

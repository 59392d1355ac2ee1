// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "micro.h"

namespace micro {

void give_up(mob_status_t status, const char* what) {
  mob_abort(1, fmt::format("{}: {}: {}", what, mob_status_name(status), mob_last_error()).c_str());
}

void* shared_memory(size_t bytes, mob_rank_t rank) {
  mob_mem_t mem = nullptr;
  void* address = nullptr;
  require(mob_mem_alloc(bytes, &mem), "mob_mem_alloc");
  require(mob_mem_address(mem, rank, 0, &address), "mob_mem_address");
  return address;
}

void* private_memory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) mob_abort(1, "no memory for a benchmark's buffer");
  std::memset(memory, 1, bytes);  // touches the pages before they are measured
  return memory;
}

void bind_to_processor(int index) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    return set;
  }();
  if (CPU_COUNT(&allowed) == 0) return;
  index %= CPU_COUNT(&allowed);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
}

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Options {
  std::vector<std::string> names;
  int rounds = 15;
  bool json = false;
  bool list = false;
  bool nothing = false;
};

// Nanoseconds of every variant in every round; the variants take turns.
std::vector<std::vector<double>> measure(const Benchmark& benchmark, int rounds) {
  std::vector<std::vector<double>> times(benchmark.variants.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t v = 0; v < benchmark.variants.size(); ++v) {
      require(mob_barrier(), "mob_barrier");
      times[v].push_back(benchmark.variants[v].run());
      require(mob_barrier(), "mob_barrier");
    }
  }
  return times;
}

// The steepest step of a sweep, up or down.
void print_worst_step(const Benchmark& benchmark, const std::vector<std::vector<double>>& times) {
  double worst = 1;
  size_t at = 0;
  for (size_t v = 1; v < times.size(); ++v) {
    const double before = median(times[v - 1]);
    const double here = median(times[v]);
    const double step = std::max(here / before, before / here);
    if (step <= worst) continue;
    worst = step;
    at = v;
  }
  if (at == 0) return;
  fmt::print("  worst neighbours: {} and {}, {:.2f} ×\n", benchmark.variants[at - 1].name,
             benchmark.variants[at].name, worst);
}

void print(const Benchmark& benchmark, const std::vector<std::vector<double>>& times, bool json) {
  const double limit = median(times[0]);
  if (!json) fmt::print("{} – {}\n", benchmark.name, benchmark.what);
  for (size_t v = 0; v < times.size(); ++v) {
    const auto [least, most] = std::ranges::minmax(times[v]);
    const double middle = median(times[v]);
    if (json) {
      fmt::print("{}\n", nlohmann::json{{"type", "micro"},
                                        {"benchmark", benchmark.name},
                                        {"what", benchmark.what},
                                        {"variant", benchmark.variants[v].name},
                                        {"ns", times[v]},
                                        {"median_ns", middle},
                                        {"ratio_to_limit", middle / limit}}
                             .dump());
    } else {
      fmt::print("  {:<36} {:>12.2f} ns  ({:.2f} … {:.2f})  {:>7.3f} × limit\n",
                 benchmark.variants[v].name, middle, least, most, middle / limit);
    }
  }
  if (benchmark.is_sweep && !json) print_worst_step(benchmark, times);
  std::fflush(stdout);
}

constexpr std::vector<Benchmark> (*kMakers[])() = {
    value_benchmarks,   copy_benchmarks,      strided_benchmarks, atomic_benchmarks,
    exposed_benchmarks, neighbour_benchmarks, one_way_benchmarks, message_benchmarks,
    barrier_benchmarks, sync_benchmarks,      lock_benchmarks,
};

// Whether all names are names of benchmarks.
bool are_known(const std::vector<std::string>& names, const std::vector<Benchmark>& all) {
  for (const std::string& name : names) {
    if (std::ranges::find(all, name, &Benchmark::name) != all.end()) continue;
    if (mob_rank() == 0) {
      fmt::print(stderr, "micro: there is no benchmark '{}'; --list shows all\n", name);
    }
    return false;
  }
  return true;
}

// Returns whether it could run.
bool run(const Options& options) {
  std::vector<Benchmark> all;
  for (auto make : kMakers) {
    for (Benchmark& benchmark : make()) all.push_back(std::move(benchmark));
  }
  if (!are_known(options.names, all)) return false;
  bind_to_processor(mob_rank());
  for (const Benchmark& benchmark : all) {
    if (options.list) {
      if (mob_rank() == 0) fmt::print("{:<19} {}\n", benchmark.name, benchmark.what);
      continue;
    }
    if (!options.names.empty() && std::ranges::count(options.names, benchmark.name) == 0) continue;
    const auto times = measure(benchmark, options.rounds);
    if (mob_rank() == 0) print(benchmark, times, options.json);
  }
  return true;
}

}  // namespace
}  // namespace micro

int main(int argc, char** argv) {
  micro::Options options;
  CLI::App app{
      "Möbius against the bare machine: medians of interleaved rounds, as ratios to a limit "
      "measured in the same run. Start it with `mobius run -n 2`.",
      "micro"};
  app.add_option("names", options.names, "benchmarks to run (default: all)");
  app.add_option("--rounds", options.rounds, "rounds of every variant")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_flag("--json", options.json, "one JSON object per variant and line");
  app.add_flag("--list", options.list, "list the benchmarks");
  app.add_flag("--nothing", options.nothing, "only start and end, to time this from outside");
  CLI11_PARSE(app, argc, argv);
  if (mob_init() != MOB_OK) {
    fmt::print(stderr, "micro: {}\n", mob_last_error());
    return 1;
  }
  const bool could = options.nothing || micro::run(options);
  return mob_finalize() == MOB_OK && could ? 0 : 1;
}

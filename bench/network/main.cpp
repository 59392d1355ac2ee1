// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "network.h"

namespace network {

void give_up(const std::string& text) {
  fmt::print(stderr, "network: {}\n", text);
  std::_Exit(1);
}

void Link::put(const void* bytes, size_t count) {
  if (write(out_, bytes, count) != static_cast<ssize_t>(count)) give_up("the other process ended");
}

void Link::get(void* bytes, size_t count) {
  auto* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = read(in_, at, count);
    if (got <= 0) give_up("the other process ended");
    at += got;
    count -= static_cast<size_t>(got);
  }
}

void Link::meet(const std::function<void()>& meanwhile) {
  char byte = 0;
  put(&byte, 1);
  pollfd arrived = {in_, POLLIN, 0};
  while (poll(&arrived, 1, 0) == 0) meanwhile();
  get(&byte, 1);
}

namespace {

struct Experiment {
  std::string name;
  std::function<double(Way&)> run;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void bind_to_processor(size_t index) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set) && index-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
}

struct Options {
  std::string address = "127.0.0.1";
  std::vector<std::string> providers = {"tcp;ofi_rxm"};
  int rounds = 9;
  int turns = 2000;
};

void measure(const Options& options, bool left, Link& link) {
  bind_to_processor(left ? 0 : 1);
  const Setup setup = {left, options.address, &link};
  std::vector<std::string> names = {"plain socket"};
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(plain_socket(setup));
  for (const std::string& provider : options.providers) {
    names.push_back(provider);
    ways.push_back(transport(setup, provider));
  }
  const int turns = options.turns;
  const std::vector<Experiment> experiments = {
      {"8 bytes one way, polling", [=](Way& way) { return way.ping_pong(turns, false); }},
      {"8 bytes one way, sleeping", [=](Way& way) { return way.ping_pong(turns / 4, true); }},
      {"8 byte write, complete", [=](Way& way) { return way.small_write(turns); }},
      {"8 byte read", [=](Way& way) { return way.small_read(turns); }},
      {"1 MiB write, one at a time", [=](Way& way) { return way.large_write(turns / 50, 1); }},
      {"1 MiB write, four at a time", [=](Way& way) { return way.large_write(turns / 100, 4); }},
      {"1 MiB read, one at a time", [=](Way& way) { return way.large_read(turns / 50, 1); }},
      {"1 MiB read, four at a time", [=](Way& way) { return way.large_read(turns / 100, 4); }},
  };
  const auto progress = [&] {
    for (const auto& way : ways) way->progress();
  };
  for (const Experiment& experiment : experiments) {
    std::vector<std::vector<double>> times(ways.size());
    for (int round = 0; round < options.rounds; ++round) {
      for (size_t way = 0; way < ways.size(); ++way) {
        link.meet(progress);
        times[way].push_back(experiment.run(*ways[way]));
      }
    }
    link.meet(progress);
    if (!left) continue;
    fmt::print("{}\n", experiment.name);
    const double limit = median(times[0]);
    for (size_t way = 0; way < ways.size(); ++way) {
      const auto [least, most] = std::ranges::minmax(times[way]);
      const double middle = median(times[way]);
      fmt::print("  {:<16} {:>10.2f} us  ({:.2f} … {:.2f})  {:>6.3f} × plain socket\n", names[way],
                 middle / 1e3, least / 1e3, most / 1e3, middle / limit);
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace network

int main(int argc, char** argv) {
  network::Options options;
  CLI::App app{
      "The transport between hosts against plain TCP sockets between two processes on one address. "
      "Medians of interleaved rounds; what one turn takes.",
      "network"};
  app.add_option("--address", options.address, "IPv4 address of this host")->capture_default_str();
  app.add_option("--provider", options.providers, "providers of libfabric")->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--turns", options.turns, "of the small experiments; large ones take fewer")
      ->check(CLI::Range(1000, 10'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  int to_right[2], to_left[2];
  if (pipe(to_right) != 0 || pipe(to_left) != 0) network::give_up("pipe");
  const pid_t right = fork();
  if (right < 0) network::give_up("fork");
  network::Link link =
      right == 0 ? network::Link(to_right[0], to_left[1]) : network::Link(to_left[0], to_right[1]);
  ::close(right == 0 ? to_right[1] : to_right[0]);
  ::close(right == 0 ? to_left[0] : to_left[1]);
  network::measure(options, right != 0, link);
  if (right == 0) return 0;
  int status = 0;
  waitpid(right, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// SPDX-License-Identifier: BSD-3-Clause

// Molecular dynamics of liquid water, with the structure of the program that paper 5 measured.
// README.md has how to build and run it. Begin to read in simulation.h and forces.cpp; processes.h
// is all that it needs of a library.

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>

#include "options.h"
#include "output.h"
#include "processes.h"
#include "simulation.h"

namespace md {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kQuietSeconds = 3.0, kProgressSeconds = 2.0;
constexpr double kMostDrift = 1e-4;  // of the total energy
constexpr double kMostShapeError = 1e-9;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What a run found, the same in all processes.
struct Findings {
  std::vector<Sample> samples;
  std::array<double, Sums::kBins> distances{};  // pairs, all samples together
  double pressure = 0.0;                        // in bar, the average
};

struct Share {
  double seconds = 0.0, communication = 0.0, waiting = 0.0;  // of all, the averages of processes
  double between_hosts = 0.0;                                // of the bytes that a step moves
  int64_t taken = 0;
  std::vector<double> each;  // seconds of a step, averages between samples, in this process
};

class Run {
 public:
  Run(Processes& processes, const Options& options)
      : processes_(processes), options_(options), simulation_(processes, options.settings) {
    if (!options.trajectory.empty() && is_first()) trajectory_.emplace(options.trajectory);
  }

  int all() {
    equilibrate();
    const Share share = measure();
    const bool right = print(share);
    write_files();
    return right ? 0 : 1;
  }

 private:
  [[nodiscard]] bool is_first() const { return processes_.rank() == 0; }

  /// Says now and then how far a long run is.
  void tell(const char* what, int step, int steps) {
    const double now = seconds_since(start_);
    if (!is_first() || now < kQuietSeconds || now - told_ < std::max(kProgressSeconds, now / 4))
      return;
    told_ = now;
    std::fprintf(stderr, "md: %s: %d of %d steps after %.0f s\n", what, step, steps, now);
  }

  /// Sums of all processes of what the last step found.
  Sample sample(double time, Findings* findings) {
    const Sums& sums = simulation_.sums();
    std::vector<int64_t> all = {sums.energy, sums.virial, simulation_.kinetic(),
                                simulation_.kinetic_of_centres()};
    all.insert(all.end(), sums.distances.begin(), sums.distances.end());
    processes_.sum(all);
    const int molecules = options_.settings.molecules;
    const auto energy = [&](size_t i) { return static_cast<double>(all[i]) / kEnergyUnits; };
    const double kinetic = energy(2);
    if (findings != nullptr) {
      for (size_t i = 0; i < Sums::kBins; ++i) {
        findings->distances[i] += static_cast<double>(all[i + 4]);
      }
      const double volume = std::pow(options_.settings.side, 3);
      findings->pressure += kBarPerUnit * (2.0 * energy(3) + energy(1)) / (3.0 * volume);
    }
    return {time, 2.0 * kinetic / (degrees_of_freedom(molecules) * kBoltzmann),
            energy(0) / molecules, kinetic / molecules};
  }

  /// From the lattice: the heat of the first moments is taken away quickly, the rest slowly.
  void equilibrate() {
    constexpr int kEvery = 5;
    constexpr double kQuick = 0.01, kSlow = 0.1;  // ps to come near the temperature
    for (int step = 1; step <= options_.equilibrate; ++step) {
      simulation_.step(false);
      tell("equilibrating", step, options_.equilibrate);
      if (step % kEvery != 0) continue;
      int64_t kinetic = simulation_.kinetic();
      processes_.sum({&kinetic, 1});
      const double temperature = 2.0 * static_cast<double>(kinetic) / kEnergyUnits /
                                 (degrees_of_freedom(options_.settings.molecules) * kBoltzmann);
      const double period = 2 * step < options_.equilibrate ? kQuick : kSlow;
      const double part = std::min(1.0, kEvery * options_.settings.step / period);
      simulation_.scale_velocities(
          std::sqrt(1.0 + part * (options_.settings.temperature / temperature - 1.0)));
    }
  }

  void write_frame_of(int step) {
    if (options_.trajectory.empty()) return;
    const std::vector<Record> molecules = simulation_.gather();
    if (trajectory_) {
      write_frame(*trajectory_, molecules, options_.settings.side, step * options_.settings.step);
    }
  }

  Share measure() {
    processes_.meet();
    processes_.take_times();
    start_ = Clock::now();
    told_ = 0.0;
    std::vector<double> each;
    Clock::time_point resumed = start_;
    double apart = 0.0;  // seconds for samples and frames, which are no part of a step
    for (int step = 1; step <= options_.steps; ++step) {
      const bool sampled = step % options_.every == 0;
      simulation_.step(sampled);
      tell("measuring", step, options_.steps);
      if (!sampled) continue;
      const Processes::Times before = processes_.take_times();
      times_.communication += before.communication;
      times_.waiting += before.waiting;
      const Clock::time_point pause = Clock::now();
      each.push_back(std::chrono::duration<double>(pause - resumed).count() / options_.every);
      findings_.samples.push_back(sample(step * options_.settings.step, &findings_));
      write_frame_of(step);
      apart += seconds_since(pause);
      processes_.take_times();
      resumed = Clock::now();
    }
    const double seconds = seconds_since(start_) - apart;
    const Processes::Times rest = processes_.take_times();
    if (!findings_.samples.empty()) {
      findings_.pressure /= static_cast<double>(findings_.samples.size());
    }
    const auto nanoseconds = [](double s) { return static_cast<int64_t>(1e9 * s); };
    std::array<int64_t, 4> sums = {
        nanoseconds(seconds), nanoseconds(times_.communication + rest.communication),
        nanoseconds(times_.waiting + rest.waiting), simulation_.tasks_taken()};
    processes_.sum(sums);
    const auto all = static_cast<double>(sums[0]);
    const Simulation::Traffic traffic = simulation_.traffic();
    const auto bytes = static_cast<double>(traffic.within + traffic.between);
    return {all / processes_.size() / 1e9,
            all > 0 ? static_cast<double>(sums[1]) / all : 0.0,
            all > 0 ? static_cast<double>(sums[2]) / all : 0.0,
            bytes > 0 ? static_cast<double>(traffic.between) / bytes : 0.0,
            sums[3],
            each};
  }

  [[nodiscard]] double mean(double Sample::* what) const {
    double sum = 0.0;
    for (const Sample& s : findings_.samples) sum += s.*what;
    return findings_.samples.empty() ? 0.0 : sum / static_cast<double>(findings_.samples.size());
  }

  /// How much the total energy grew over the run, by the line through all samples, relative to it.
  [[nodiscard]] double drift() const {
    const auto& samples = findings_.samples;
    if (samples.size() < 2) return 0.0;
    const double time = mean(&Sample::time);
    const double energy = mean(&Sample::potential) + mean(&Sample::kinetic);
    double covariance = 0.0, variance = 0.0;
    for (const Sample& s : samples) {
      covariance += (s.time - time) * (s.potential + s.kinetic - energy);
      variance += (s.time - time) * (s.time - time);
    }
    return covariance / variance * (samples.back().time - samples.front().time) / energy;
  }

  /// Pairs at a distance, relative to molecules that know nothing of each other.
  [[nodiscard]] double distribution(size_t bin) const {
    const double inner = static_cast<double>(bin) * Sums::kBinWidth;
    const double outer = inner + Sums::kBinWidth;
    const double molecules = options_.settings.molecules;
    const double shell =
        4.0 / 3.0 * 3.14159265358979323846 * (outer * outer * outer - inner * inner * inner);
    const double pairs = 0.5 * molecules * molecules / std::pow(options_.settings.side, 3) * shell *
                         static_cast<double>(findings_.samples.size());
    return pairs > 0.0 ? findings_.distances[bin] / pairs : 0.0;
  }

  bool print(const Share& share) {
    auto checksum = static_cast<int64_t>(simulation_.checksum());
    processes_.sum({&checksum, 1});
    int64_t error = static_cast<int64_t>(1e15 * simulation_.largest_shape_error());
    processes_.largest({&error, 1});
    const double drifted = drift();
    const bool right =
        std::abs(drifted) < kMostDrift && static_cast<double>(error) < 1e15 * kMostShapeError;
    if (!is_first()) return right;
    size_t peak = 0;
    for (size_t i = 0; i < Sums::kBins; ++i) {
      if (distribution(i) > distribution(peak)) peak = i;
    }
    const double peak_at = (static_cast<double>(peak) + 0.5) * Sums::kBinWidth;
    const Settings& s = options_.settings;
    const auto& cells = simulation_.grid().cells_per_side();
    const double rate = share.seconds > 0.0 ? options_.steps / share.seconds : 0.0;
    if (options_.json) {
      std::printf(
          "{\"program\":\"md\",\"library\":\"%s\",\"processes\":%d,\"molecules\":%d,\"steps\":%d,"
          "\"seconds\":%.9g,\"communication\":%.6g,\"waiting\":%.6g,\"between_hosts\":%.6g,"
          "\"tasks_taken\":%" PRId64
          ",\"temperature\":%.8g,\"pressure\":%.8g,\"potential\":%.10g,"
          "\"peak\":%.6g,\"peak_at\":%.6g,\"drift\":%.6g,\"checksum\":\"%016" PRIx64
          "\",\"right\":%s,\"seconds_each\":[",
          processes_.library().c_str(), processes_.size(), s.molecules, options_.steps,
          share.seconds, share.communication, share.waiting, share.between_hosts, share.taken,
          mean(&Sample::temperature), findings_.pressure, mean(&Sample::potential),
          distribution(peak), peak_at, drifted, static_cast<uint64_t>(checksum),
          right ? "true" : "false");
      for (size_t i = 0; i < share.each.size(); ++i) {
        std::printf("%s%.9g", i > 0 ? "," : "", share.each[i]);
      }
      std::printf("]}\n");
      return right;
    }
    std::printf(
        "md: %d molecules of water (SPC/E) in a box of %.3f nm, cut-off %.3f nm, "
        "%d x %d x %d cells, %d processes over %s\n",
        s.molecules, s.side, s.cutoff, cells[0], cells[1], cells[2], processes_.size(),
        processes_.library().c_str());
    std::printf(
        "md: %d steps of %g fs in %.2f s, %.0f steps/s: %.1f %% computing, "
        "%.1f %% communication, %.1f %% waiting\n",
        options_.steps, 1e3 * s.step, share.seconds, rate,
        100.0 * (1.0 - share.communication - share.waiting), 100.0 * share.communication,
        100.0 * share.waiting);
    std::printf(
        "md: %.1f K, %.0f bar, potential energy %.2f kJ/mol; most oxygens are %.3f nm "
        "apart, g = %.2f\n",
        mean(&Sample::temperature), findings_.pressure, mean(&Sample::potential), peak_at,
        distribution(peak));
    std::printf("md: checksum %016" PRIx64 ", energy drifted by %.1e of itself: %s\n",
                static_cast<uint64_t>(checksum), drifted, right ? "right" : "WRONG");
    return right;
  }

  void write_files() {
    const std::vector<Record> molecules =
        options_.state.empty() ? std::vector<Record>{} : simulation_.gather();
    if (!is_first()) return;
    if (!options_.state.empty()) write_state(options_.state, molecules);
    if (!options_.plot.empty()) write_plot(options_.plot, findings_.samples);
    if (!options_.distances.empty()) {
      Output out(options_.distances);
      out.print("# distance of oxygens (nm), g\n");
      for (size_t i = 0; i < Sums::kBins; ++i) {
        out.print("%.4f %.5f\n", (static_cast<double>(i) + 0.5) * Sums::kBinWidth, distribution(i));
      }
      out.close();
    }
    if (trajectory_) trajectory_->close();
  }

  Processes& processes_;
  Options options_;
  Simulation simulation_;
  std::optional<Output> trajectory_;
  Findings findings_;
  Processes::Times times_;
  Clock::time_point start_ = Clock::now();
  double told_ = 0.0;
};

int run(Options options) {
  const std::unique_ptr<Processes> processes = Processes::start();
  options.settings.balance &= processes->one_sided();
  try {
    return Run(*processes, options).all();
  } catch (const std::exception& error) {
    processes->fail(error.what());  // the other processes wait for this one
  }
  return 1;
}

}  // namespace
}  // namespace md

int main(int argc, char** argv) try {
  return md::run(md::read_options(argc, argv));
} catch (const std::exception& error) {
  std::fprintf(stderr, "md: %s\n", error.what());
  return 1;
}

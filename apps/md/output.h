// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_OUTPUT_H
#define MD_OUTPUT_H

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "simulation.h"

namespace md {

/// A file that is written. Errors are thrown as std::runtime_error with the file's name.
class Output {
 public:
  explicit Output(std::string name);
  Output(Output&&) = default;
  Output& operator=(Output&&) = default;
  ~Output() = default;

  /// As printf().
  [[gnu::format(printf, 2, 3)]] void print(const char* format, ...);
  /// Writes what is left, and reports what went wrong.
  void close();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Adds a frame in the format XYZ, with the box, in Ångström.
void write_frame(Output& out, const std::vector<Record>& molecules, double side, double time_ps);

/// Writes a table with a row for each atom: position, velocity, force.
void write_state(const std::string& file, const std::vector<Record>& molecules);

/// One point of the curves: temperature in K, total energy in kJ/mol per molecule.
struct Sample {
  double time = 0.0, temperature = 0.0, potential = 0.0, kinetic = 0.0;
};

/// Draws temperature and energies over time, as SVG.
void write_plot(const std::string& file, const std::vector<Sample>& samples);

}  // namespace md

#endif

// SPDX-License-Identifier: BSD-3-Clause

#include "output.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <functional>
#include <stdexcept>

namespace md {
namespace {

[[noreturn]] void report(const std::string& name) {
  throw std::runtime_error("cannot write " + name + ": " + std::strerror(errno));
}

/// A picture of one curve, `top` pixels below the upper edge.
void draw(Output& out, const std::vector<Sample>& samples, int top, const char* title,
          const std::function<double(const Sample&)>& value) {
  constexpr double kLeft = 90.0, kWidth = 680.0, kHeight = 150.0;
  double least = value(samples[0]), most = least;
  for (const Sample& s : samples) {
    least = std::min(least, value(s));
    most = std::max(most, value(s));
  }
  const double margin = std::max(0.05 * (most - least), 1e-9 * std::abs(most) + 1e-12);
  least -= margin;
  most += margin;
  const double start = samples.front().time, end = std::max(samples.back().time, start + 1e-9);
  out.print("<text x='%g' y='%d' font-weight='bold'>%s</text>\n", kLeft, top - 8, title);
  for (int i = 0; i <= 4; ++i) {
    const double y = top + kHeight * i / 4.0;
    out.print(
        "<path d='M%g %gh%g' stroke='#ddd'/>"
        "<text x='%g' y='%g' text-anchor='end'>%.6g</text>\n",
        kLeft, y, kWidth, kLeft - 6.0, y + 4.0, most - (most - least) * i / 4.0);
    const double x = kLeft + kWidth * i / 4.0;
    out.print("<text x='%g' y='%g' text-anchor='middle'>%.4g</text>\n", x, top + kHeight + 16.0,
              start + (end - start) * i / 4.0);
  }
  out.print("<polyline fill='none' stroke='#0b62a4' stroke-width='1.5' points='");
  for (const Sample& s : samples) {
    out.print("%.2f,%.2f ", kLeft + kWidth * (s.time - start) / (end - start),
              top + kHeight * (most - value(s)) / (most - least));
  }
  out.print("'/>\n");
}

}  // namespace

Output::Output(std::string name) : name_(std::move(name)), file_(std::fopen(name_.c_str(), "w")) {
  if (!file_) report(name_);
}

void Output::print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vfprintf(file_.get(), format, arguments);
  va_end(arguments);
  if (written < 0) report(name_);
}

void Output::close() {
  if (std::fclose(file_.release()) != 0) report(name_);
}

void write_frame(Output& out, const std::vector<Record>& molecules, double side, double time_ps) {
  constexpr double kAngstrom = 10.0;
  const double box = kAngstrom * side;
  out.print(
      "%zu\nLattice=\"%.6f 0 0 0 %.6f 0 0 0 %.6f\" Properties=species:S:1:pos:R:3 Time=%.4f\n",
      molecules.size() * kAtoms, box, box, box, time_ps);
  for (const Record& molecule : molecules) {
    for (size_t atom = 0; atom < kAtoms; ++atom) {
      const Vec3 p = kAngstrom * molecule.position[atom];
      out.print("%c %.5f %.5f %.5f\n", atom == 0 ? 'O' : 'H', p.x, p.y, p.z);
    }
  }
}

void write_state(const std::string& file, const std::vector<Record>& molecules) {
  Output out(file);
  out.print("# x y z (nm)  vx vy vz (nm/ps)  fx fy fz (kJ/mol/nm); O, H, H of each molecule\n");
  for (const Record& molecule : molecules) {
    for (size_t atom = 0; atom < kAtoms; ++atom) {
      for (const Vec3& v : {molecule.position[atom], molecule.velocity[atom],
                            force_on(molecule.forces, static_cast<int>(atom))}) {
        out.print("%.17g %.17g %.17g ", v.x, v.y, v.z);
      }
      out.print("\n");
    }
  }
  out.close();
}

void write_plot(const std::string& file, const std::vector<Sample>& samples) {
  if (samples.empty()) throw std::runtime_error("no samples to draw in " + file);
  Output out(file);
  out.print(
      "<svg xmlns='http://www.w3.org/2000/svg' width='800' height='680' font-size='12' "
      "font-family='sans-serif'><rect width='800' height='680' fill='white'/>\n");
  draw(out, samples, 40, "Temperature (K) over time (ps)",
       [](const Sample& s) { return s.temperature; });
  draw(out, samples, 260, "Potential energy (kJ/mol per molecule)",
       [](const Sample& s) { return s.potential; });
  draw(out, samples, 480, "Total energy (kJ/mol per molecule)",
       [](const Sample& s) { return s.potential + s.kinetic; });
  out.print("</svg>\n");
  out.close();
}

}  // namespace md

// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_OPTIONS_H
#define MD_OPTIONS_H

#include <string>

#include "simulation.h"

namespace md {

struct Options {
  Settings settings;
  double density = 0.997;  // g/cm³
  int equilibrate = 2000, steps = 1000;
  int every = 10;  // steps between samples, and between frames of the trajectory
  std::string trajectory, plot, distances, state;  // files, or empty
  bool json = false;
};

/// Reads the command line. Ends the program after --help, and after a message if it is wrong.
Options read_options(int argc, char** argv);

}  // namespace md

#endif

// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_START_H
#define MD_START_H

#include <cstdint>
#include <vector>

#include "water.h"

namespace md {

/// A molecule with its number, and the forces on it where they are known.
struct Record {
  int64_t id = 0;
  Molecule position{}, velocity{};
  Forces forces{};
};

/// Mixes the bits of a number: the next one of a sequence, or a hash (splitmix64).
uint64_t scramble(uint64_t x);

/// Molecules on a cubic lattice in the box, turned at random, with random velocities of a
/// temperature and no momentum in all. The same for the same arguments, in every process.
std::vector<Record> start_on_lattice(int molecules, double side, double temperature, uint64_t seed);

/// Degrees of freedom of so many rigid molecules without momentum in all.
inline double degrees_of_freedom(int molecules) { return 6.0 * molecules - 3.0; }

double kinetic_energy(const Molecule& velocity);
/// That of the motion of the centre alone.
double kinetic_energy_of_centre(const Molecule& velocity);

}  // namespace md

#endif

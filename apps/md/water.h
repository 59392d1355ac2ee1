// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_WATER_H
#define MD_WATER_H

// The model of water: SPC/E (Berendsen, Grigera, Straatsma 1987), three charges on a rigid
// triangle, and a Lennard-Jones potential between the oxygens. Units: nm, ps, g/mol, kJ/mol, so
// that a force is in kJ/mol/nm and Newton's law needs no factor.

#include <array>
#include <cstdint>

#include "vector.h"

namespace md {

constexpr int kAtoms = 3;  // of a molecule: O, H, H
constexpr std::array<double, kAtoms> kMass = {15.9994, 1.008, 1.008};
constexpr double kMolarMass = kMass[0] + kMass[1] + kMass[2];
constexpr std::array<double, kAtoms> kCharge = {-0.8476, 0.4238, 0.4238};
constexpr double kBondLength = 0.1;
constexpr double kHydrogenDistance = 0.1632980861845278;  // of an angle of arccos(-1/3)
constexpr double kSigma = 0.3165557, kEpsilon = 0.6501696;
constexpr double kCoulomb = 138.93545764438198;     // of two charges e at 1 nm
constexpr double kBoltzmann = 0.00831446261815324;  // kJ/mol/K
constexpr double kMassPerVolume = 602.214076;       // g/mol/nm³ in 1 g/cm³
constexpr double kBarPerUnit = 16.605390671738466;  // kJ/mol/nm³ in bar

/// Positions, or velocities, of the atoms of a molecule.
using Molecule = std::array<Vec3, kAtoms>;

// Forces and energies are added up as integers: the sum is the same in whatever order processes
// add, so that the trajectory does not depend on their number.

/// Forces on the atoms of a molecule, in units of 1/kForceUnits kJ/mol/nm.
using Forces = std::array<int64_t, 3 * kAtoms>;
constexpr double kForceUnits = 1099511627776.0;  // 2^40
constexpr double kEnergyUnits = 4294967296.0;    // 2^32

inline int64_t fixed(double value, double units) { return static_cast<int64_t>(value * units); }

/// Force on one atom.
inline Vec3 force_on(const Forces& forces, int atom) {
  const size_t i = 3 * static_cast<size_t>(atom);
  return (1.0 / kForceUnits) * Vec3{static_cast<double>(forces[i]),
                                    static_cast<double>(forces[i + 1]),
                                    static_cast<double>(forces[i + 2])};
}

/// The centre of mass, as seen from the oxygen.
inline Vec3 centre(const Molecule& molecule) {
  return (kMass[1] / kMolarMass) * ((molecule[1] - molecule[0]) + (molecule[2] - molecule[0]));
}

}  // namespace md

#endif

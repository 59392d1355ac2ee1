// SPDX-License-Identifier: BSD-3-Clause

#include "start.h"

#include <cmath>
#include <numbers>

#include "triangle.h"

namespace md {
namespace {

class Random {
 public:
  Random(uint64_t seed, int64_t stream)
      : state_(scramble(seed) ^ scramble(~static_cast<uint64_t>(stream))) {}
  /// In (0, 1].
  double uniform() {
    state_ = scramble(state_);
    return (static_cast<double>(state_ >> 11) + 1.0) / 9007199254740992.0;
  }
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

/// The molecule with its oxygen at `place`, turned at random.
Molecule turned(const Vec3& place, Random& random) {
  double w = random.normal(), x = random.normal(), y = random.normal(), z = random.normal();
  const double norm = 1.0 / std::sqrt(w * w + x * x + y * y + z * z);
  w *= norm, x *= norm, y *= norm, z *= norm;
  const Vec3 axis = {1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)};
  const Vec3 other = {2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)};
  const double half = 0.5 * kHydrogenDistance;
  const double along = std::sqrt(kBondLength * kBondLength - half * half);
  return {place, place + along * axis + half * other, place + along * axis - half * other};
}

}  // namespace

uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double kinetic_energy(const Molecule& velocity) {
  double energy = 0.0;
  for (size_t i = 0; i < kAtoms; ++i) energy += 0.5 * kMass[i] * dot(velocity[i], velocity[i]);
  return energy;
}

double kinetic_energy_of_centre(const Molecule& velocity) {
  Vec3 momentum;
  for (size_t i = 0; i < kAtoms; ++i) momentum += kMass[i] * velocity[i];
  return 0.5 * dot(momentum, momentum) / kMolarMass;
}

std::vector<Record> start_on_lattice(int molecules, double side, double temperature,
                                     uint64_t seed) {
  int sites = 1;  // along a side
  while (sites * sites * sites < molecules) ++sites;
  const double spacing = side / sites;
  std::vector<Record> records(static_cast<size_t>(molecules));
  Vec3 momentum;
  for (int64_t i = 0; i < molecules; ++i) {
    const int64_t site = i * sites * sites * sites / molecules;
    Random random(seed, i);
    Record& record = records[static_cast<size_t>(i)];
    record.id = i;
    record.position = turned(spacing * Vec3{static_cast<double>(site % sites) + 0.5,
                                            static_cast<double>(site / sites % sites) + 0.5,
                                            static_cast<double>(site / sites / sites) + 0.5},
                             random);
    for (size_t atom = 0; atom < kAtoms; ++atom) {
      const double width = std::sqrt(kBoltzmann * temperature / kMass[atom]);
      record.velocity[atom] = width * Vec3{random.normal(), random.normal(), random.normal()};
    }
    restore_rigid_motion(record.position, record.velocity);
    for (size_t atom = 0; atom < kAtoms; ++atom) momentum += kMass[atom] * record.velocity[atom];
  }
  const Vec3 drift = (1.0 / (kMolarMass * molecules)) * momentum;
  double energy = 0.0;
  for (Record& record : records) {
    for (Vec3& velocity : record.velocity) velocity -= drift;
    energy += kinetic_energy(record.velocity);
  }
  const double wanted = 0.5 * degrees_of_freedom(molecules) * kBoltzmann * temperature;
  for (Record& record : records) {
    for (Vec3& velocity : record.velocity) velocity *= std::sqrt(wanted / energy);
  }
  return records;
}

}  // namespace md

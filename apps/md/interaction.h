// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_INTERACTION_H
#define MD_INTERACTION_H

#include <array>
#include <cstdint>

#include "water.h"

namespace md {

/// What the force loop finds besides forces, in whole units, so that it can be summed in any order.
struct Sums {
  static constexpr int kBins = 200;
  static constexpr double kBinWidth = 0.005;  // nm
  int64_t energy = 0;                         // potential, in 1/kEnergyUnits kJ/mol
  int64_t virial = 0;                         // of the molecules' centres, likewise
  std::array<int64_t, kBins> distances{};     // pairs by the distance of their oxygens
};

/// Potential and forces of two molecules in a periodic box.
///
/// Both parts end smoothly at the cut-off, so that energy is conserved: the Lennard-Jones potential
/// by a switching function over the last tenth of a nanometre and more, the Coulomb potential by a
/// reaction field: beyond the cut-off of each atom lies a conductor, which makes energy and force 0
/// there. Atoms are cut off, not molecules.
class Interaction {
 public:
  Interaction(double side, double cutoff);

  [[nodiscard]] double cutoff() const { return cutoff_; }
  /// Beyond this distance of the oxygens no atoms of two molecules interact.
  [[nodiscard]] double reach() const { return cutoff_ + 2.0 * kBondLength; }

  /// Adds the forces of `a` and `b` on each other to `on_a` and `on_b`. With kSample, also to
  /// `sums`.
  template <bool kSample>
  void add(const Molecule& a, const Molecule& b, Forces& on_a, Forces& on_b, Sums& sums) const {
    const Vec3 between = b[0] - a[0];
    const Vec3 shift = image(between, side_, per_side_);
    const Vec3 oxygens = between - shift;
    const double distance2 = dot(oxygens, oxygens);
    if (distance2 >= reach2_) return;
    std::array<Vec3, kAtoms> force_a{}, force_b{};
    double energy = 0.0;
    for (size_t i = 0; i < kAtoms; ++i) {
      for (size_t j = 0; j < kAtoms; ++j) {
        const Vec3 d = (b[j] - a[i]) - shift;  // exactly the opposite if a and b change places
        const double r2 = dot(d, d);
        if (r2 >= cutoff2_) continue;
        const double charges = kCoulomb * (kCharge[i] * kCharge[j]);
        const double per_r2 = 1.0 / r2, per_r = std::sqrt(per_r2);
        double over_r = charges * (per_r * per_r2 - 2.0 * field_);  // force / r
        if constexpr (kSample) energy += charges * (per_r + field_ * r2 - field_shift_);
        if (i == 0 && j == 0) over_r += lennard_jones<kSample>(r2, per_r2, energy);
        const Vec3 force = over_r * d;
        force_a[i] -= force;
        force_b[j] += force;
      }
    }
    Vec3 total;
    for (size_t i = 0; i < kAtoms; ++i) {
      to_units(force_a[i], on_a, 3 * i);
      to_units(force_b[i], on_b, 3 * i);
      if constexpr (kSample) total += force_b[i];
    }
    if constexpr (kSample) {
      sums.energy += fixed(energy, kEnergyUnits);
      sums.virial += fixed(dot(total, oxygens + (centre(b) - centre(a))), kEnergyUnits);
      const auto bin = static_cast<size_t>(std::sqrt(distance2) / Sums::kBinWidth);
      if (bin < Sums::kBins) ++sums.distances[bin];
    }
  }

 private:
  static void to_units(const Vec3& force, Forces& sum, size_t first) {
    sum[first] += fixed(force.x, kForceUnits);
    sum[first + 1] += fixed(force.y, kForceUnits);
    sum[first + 2] += fixed(force.z, kForceUnits);
  }

  /// Force / r of two oxygens.
  template <bool kSample>
  double lennard_jones(double r2, double per_r2, double& energy) const {
    const double s2 = kSigma * kSigma * per_r2, s6 = s2 * s2 * s2;
    const double potential = 4.0 * kEpsilon * (s6 * s6 - s6);
    const double over_r = 4.0 * kEpsilon * (12.0 * s6 * s6 - 6.0 * s6) * per_r2;
    if (r2 <= switch_start_ * switch_start_) {
      if constexpr (kSample) energy += potential;
      return over_r;
    }
    const double r = std::sqrt(r2), x = (r - switch_start_) * per_switch_;
    const double factor = 1.0 + x * x * x * (-10.0 + x * (15.0 - 6.0 * x));
    const double slope = x * x * (-30.0 + x * (60.0 - 30.0 * x)) * per_switch_;
    if constexpr (kSample) energy += factor * potential;
    return factor * over_r - slope * potential / r;
  }

  double side_, per_side_, cutoff_, cutoff2_, reach2_;
  double field_, field_shift_;        // of the reaction field
  double switch_start_, per_switch_;  // 1 / its length
};

inline Interaction::Interaction(double side, double cutoff)
    : side_(side),
      per_side_(1.0 / side),
      cutoff_(cutoff),
      cutoff2_(cutoff * cutoff),
      reach2_(reach() * reach()),
      field_(0.5 / (cutoff * cutoff * cutoff)),
      field_shift_(1.5 / cutoff),
      switch_start_(cutoff * 5.0 / 6.0),
      per_switch_(6.0 / cutoff) {}

}  // namespace md

#endif

// SPDX-License-Identifier: BSD-3-Clause

#include "triangle.h"

#include <algorithm>
#include <cstddef>

namespace md {
namespace {

using Three = std::array<double, 3>;
using Matrix = std::array<Three, 3>;
using Sides = std::array<Vec3, 3>;

struct Side {
  size_t from, to;
  double length;
};
constexpr std::array<Side, 3> kSides = {
    {{0, 1, kBondLength}, {0, 2, kBondLength}, {1, 2, kHydrogenDistance}}};

Sides sides_of(const Molecule& m) { return {m[1] - m[0], m[2] - m[0], m[2] - m[1]}; }

/// How much side k changes when a unit impulse along side l acts on its two atoms.
constexpr Matrix make_response() {
  Matrix response = {};
  for (size_t k = 0; k < 3; ++k) {
    for (size_t l = 0; l < 3; ++l) {
      const Side a = kSides[k], b = kSides[l];
      double& r = response[k][l];
      if (a.to == b.to) r += 1.0 / kMass[a.to];
      if (a.to == b.from) r -= 1.0 / kMass[a.to];
      if (a.from == b.to) r -= 1.0 / kMass[a.from];
      if (a.from == b.from) r += 1.0 / kMass[a.from];
    }
  }
  return response;
}
constexpr Matrix kResponse = make_response();

double determinant(const Three& a, const Three& b, const Three& c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) +
         c[0] * (a[1] * b[2] - a[2] * b[1]);
}

/// Solves m · x = right by Cramer's rule.
Three solve(const Matrix& m, const Three& right) {
  const Three a = {m[0][0], m[1][0], m[2][0]}, b = {m[0][1], m[1][1], m[2][1]},
              c = {m[0][2], m[1][2], m[2][2]};
  const double all = determinant(a, b, c);
  return {determinant(right, b, c) / all, determinant(a, right, c) / all,
          determinant(a, b, right) / all};
}

/// Moves the atoms (or changes their velocities) by impulses along sides.
void push(const Sides& along, const Three& impulse, Molecule& moved) {
  for (size_t k = 0; k < 3; ++k) {
    moved[kSides[k].from] -= (impulse[k] / kMass[kSides[k].from]) * along[k];
    moved[kSides[k].to] += (impulse[k] / kMass[kSides[k].to]) * along[k];
  }
}

}  // namespace

bool restore_shape(const Molecule& before, double dt, Molecule& position, Molecule& velocity) {
  constexpr int kMostIterations = 20;
  constexpr double kTolerance = 1e-14;
  const Sides along = sides_of(before);
  // Near the origin, where rounding is far smaller than the tolerance.
  const Molecule free = {position[0] - before[0], position[1] - before[0], position[2] - before[0]};
  Molecule moved = free;
  for (int i = 0; i < kMostIterations; ++i) {
    const Sides now = sides_of(moved);
    Matrix slope;
    Three excess;
    double largest = 0.0;
    for (size_t k = 0; k < 3; ++k) {
      const double wanted = kSides[k].length * kSides[k].length;
      excess[k] = wanted - dot(now[k], now[k]);
      largest = std::max(largest, std::abs(excess[k]) / wanted);
      for (size_t l = 0; l < 3; ++l) slope[k][l] = 2.0 * kResponse[k][l] * dot(now[k], along[l]);
    }
    if (largest < kTolerance) {
      for (size_t atom = 0; atom < kAtoms; ++atom) {
        const Vec3 pushed = moved[atom] - free[atom];
        position[atom] += pushed;
        velocity[atom] += (1.0 / dt) * pushed;
      }
      return true;
    }
    push(along, solve(slope, excess), moved);
  }
  return false;
}

void restore_rigid_motion(const Molecule& position, Molecule& velocity) {
  const Sides along = sides_of(position), change = sides_of(velocity);
  Matrix slope;
  Three excess;
  for (size_t k = 0; k < 3; ++k) {
    excess[k] = -dot(change[k], along[k]);
    for (size_t l = 0; l < 3; ++l) slope[k][l] = kResponse[k][l] * dot(along[k], along[l]);
  }
  push(along, solve(slope, excess), velocity);
}

double shape_error(const Molecule& position) {
  const Sides now = sides_of(position);
  double largest = 0.0;
  for (size_t k = 0; k < 3; ++k) {
    largest = std::max(largest, std::abs(std::sqrt(dot(now[k], now[k])) / kSides[k].length - 1.0));
  }
  return largest;
}

}  // namespace md

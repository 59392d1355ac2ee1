// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_VECTOR_H
#define MD_VECTOR_H

#include <cmath>

namespace md {

struct Vec3 {
  double x = 0.0, y = 0.0, z = 0.0;

  Vec3& operator+=(const Vec3& o) { return x += o.x, y += o.y, z += o.z, *this; }
  Vec3& operator-=(const Vec3& o) { return x -= o.x, y -= o.y, z -= o.z, *this; }
  Vec3& operator*=(double s) { return x *= s, y *= s, z *= s, *this; }
  friend Vec3 operator+(Vec3 a, const Vec3& b) { return a += b; }
  friend Vec3 operator-(Vec3 a, const Vec3& b) { return a -= b; }
  friend Vec3 operator*(double s, Vec3 a) { return a *= s; }
};

inline double dot(const Vec3& a, const Vec3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

/// The nearest integer, for numbers far below 2^51, without a call.
inline double nearest(double x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 · 2^52: its last bit counts ones
  return (x + kMagic) - kMagic;
}

/// The multiple of the side of a periodic box that is nearest to a difference of positions.
inline Vec3 image(const Vec3& difference, double side, double per_side) {
  return {side * nearest(difference.x * per_side), side * nearest(difference.y * per_side),
          side * nearest(difference.z * per_side)};
}

}  // namespace md

#endif

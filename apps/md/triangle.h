// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_TRIANGLE_H
#define MD_TRIANGLE_H

#include "water.h"

namespace md {

/// Gives a molecule that moved freely for `dt` its rigid shape back, by forces along the sides that
/// it had before (SHAKE's constraints, solved by Newton's method), and corrects its velocities.
/// @return false if it was bent too far for a solution
bool restore_shape(const Molecule& before, double dt, Molecule& position, Molecule& velocity);

/// Takes away the parts of velocities that would change the shape (RATTLE).
void restore_rigid_motion(const Molecule& position, Molecule& velocity);

/// The largest relative error of the three distances.
double shape_error(const Molecule& position);

}  // namespace md

#endif

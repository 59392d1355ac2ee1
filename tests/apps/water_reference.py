# SPDX-License-Identifier: BSD-3-Clause
"""Forces on rigid SPC/E water as apps/md defines them, without its code: by NumPy, over all pairs
of atoms, and by OpenMM.

Run as a program with a state file of `md --state`, the side of the box and the cut-off, it prints
the largest difference of the forces in the file from OpenMM's, relative to their root mean square.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CHARGES = (-0.8476, 0.4238, 0.4238)
SIGMA, EPSILON = 0.3165557, 0.6501696
COULOMB = 138.93545764438198


def relative_difference(found: Array, expected: Array) -> float:
    """The largest difference, relative to the root mean square."""
    return float(np.abs(found - expected).max() / np.sqrt((expected**2).mean()))


def forces_by_numpy(positions: Array, side: float, cutoff: float) -> tuple[float, Array]:
    """Potential energy in kJ/mol, and forces."""
    atoms = len(positions)
    charges = np.tile(CHARGES, atoms // 3)
    apart = positions[None, :] - positions[:, None]  # from the first to the second
    apart -= side * np.round(apart / side)
    r2 = (apart**2).sum(axis=2)
    molecule = np.arange(atoms) // 3
    meet = (molecule[:, None] != molecule[None, :]) & (r2 < cutoff**2)
    r = np.sqrt(np.where(meet, r2, 1.0))
    field = 0.5 / cutoff**3
    products = COULOMB * charges[:, None] * charges[None, :]
    energy = products * (1 / r + field * r**2 - 1.5 / cutoff)
    slope = products * (-1 / r**2 + 2 * field * r)

    oxygen = np.arange(atoms) % 3 == 0
    both = oxygen[:, None] & oxygen[None, :]
    s6 = (SIGMA / r) ** 6
    potential = 4 * EPSILON * (s6**2 - s6)
    potential_slope = 4 * EPSILON * (6 * s6 - 12 * s6**2) / r
    start = cutoff * 5 / 6
    x = np.clip((r - start) / (cutoff - start), 0, 1)
    switch = 1 - 10 * x**3 + 15 * x**4 - 6 * x**5
    switch_slope = (-30 * x**2 + 60 * x**3 - 30 * x**4) / (cutoff - start)
    energy += both * switch * potential
    slope += both * (switch * potential_slope + switch_slope * potential)
    forces = ((meet * slope / r)[:, :, None] * apart).sum(axis=1)
    return float((meet * energy).sum() / 2), forces


def forces_by_openmm(positions: Array, side: float, cutoff: float) -> tuple[float, Array]:
    """The same, with OpenMM's own reaction field and switching function."""
    import openmm as mm  # only this function needs it
    from openmm import unit

    system: Any = mm.System()
    system.setDefaultPeriodicBoxVectors((side, 0, 0), (0, side, 0), (0, 0, side))
    force: Any = mm.NonbondedForce()
    force.setNonbondedMethod(mm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(cutoff)
    force.setReactionFieldDielectric(1e12)  # a conductor
    force.setUseSwitchingFunction(True)
    force.setSwitchingDistance(cutoff * 5 / 6)
    force.setUseDispersionCorrection(False)
    for atom in range(len(positions)):
        system.addParticle(1.0)
        force.addParticle(CHARGES[atom % 3], SIGMA, EPSILON if atom % 3 == 0 else 0.0)
    for first in range(0, len(positions), 3):
        for a, b in ((0, 1), (0, 2), (1, 2)):
            force.addException(first + a, first + b, 0.0, 1.0, 0.0)
    system.addForce(force)
    platform = mm.Platform.getPlatformByName("Reference")  # in double precision
    context: Any = mm.Context(system, mm.VerletIntegrator(0.001), platform)
    context.setPositions(positions)
    state = context.getState(getEnergy=True, getForces=True)
    per = unit.kilojoule_per_mole
    return (
        float(state.getPotentialEnergy().value_in_unit(per)),
        np.asarray(state.getForces(asNumpy=True).value_in_unit(per / unit.nanometer)),
    )


def main() -> None:
    """Compares as the top of this file says."""
    table = np.loadtxt(sys.argv[1])
    side, cutoff = float(sys.argv[2]), float(sys.argv[3])
    _, expected = forces_by_openmm(table[:, :3], side, cutoff)
    print(relative_difference(table[:, 6:9], expected))


if __name__ == "__main__":
    main()

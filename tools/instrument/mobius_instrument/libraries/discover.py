# SPDX-License-Identifier: BSD-3-Clause
"""All libraries of this machine, and the choice among them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mobius_instrument.errors import InstrumentError
from mobius_instrument.libraries import armci, lapi, mobius, mpi, shmem, upc, wheels
from mobius_instrument.libraries.base import ON_MOBIUS, Candidate
from mobius_instrument.libraries.described import Description, described, shipped_variants
from mobius_instrument.locations import Locations


def discover(
    locations: Locations,
    mpiccs: tuple[Path, ...],
    install: bool,
    intel: bool,
    descriptions: tuple[Description, ...] = (),
    oshccs: tuple[Path, ...] = (),
    variants: bool = False,
) -> list[Candidate]:
    """The libraries in the order of reports."""
    known = [
        *mobius.candidates(locations),
        *lapi.candidates(locations),
        *armci.candidates(locations),
        *shmem.on_mobius(locations),
        *upc.candidates(locations),
        *mpi.on_mobius(
            [*wheels.candidates(locations, install, intel), *mpi.system_candidates(mpiccs)],
            locations,
        ),
        *armci.beside_mpi(),
        *shmem.candidates(oshccs),
    ]
    more = shipped_variants(known) if variants else ()
    return [*known, *described((*more, *descriptions), known)]


# Whoever asks for nothing gets Möbius, its OpenSHMEM, the limits and this number of MPIs.
USUAL_MPIS: Final = 2
ALL: Final = "all"
_USUAL: Final = ("mobius", "limits", "mobius-shmem")
_FAMILIES: Final = ("openmpi", "mpich", "intel", "lam")


def usual_mpis(candidates: list[Candidate]) -> list[Candidate]:
    """The MPIs of this machine in the order in which they are usually measured: the newest first,
    one of each family before others of it."""
    names = {candidate.name for candidate in candidates}
    found = [
        one for one in candidates
        if one.name + ON_MOBIUS in names or one.name.startswith("debian-") or one.name in _FAMILIES
    ]  # fmt: skip
    found = [one for one in found if ON_MOBIUS not in one.name and not one.name.startswith("mpicc")]
    seen: set[str] = set()
    first: list[Candidate] = []
    for one in found:
        family = next((name for name in _FAMILIES if name in one.name), one.name)
        if family not in seen:
            seen.add(family)
            first.append(one)
    return first + [one for one in found if one not in first]


def choose(
    candidates: list[Candidate],
    wanted: list[str],
    skipped: list[str],
    given: tuple[str, ...] = (),
) -> list[Candidate]:
    """Applies `--libs` and `--skip`; without `--libs` the usual ones, to which the session adds
    usual_mpis(). Libraries of `--mpicc` or `--oshcc`, and those `given`, are
    always chosen."""
    names = [candidate.name for candidate in candidates]
    for option, listed in (("--libs", wanted), ("--skip", skipped)):
        for name in listed:
            if name not in names and (name != ALL or option != "--libs"):
                raise InstrumentError(
                    f"{option}: no library '{name}' here; there are {', '.join(names)}"
                )
    chosen = [
        candidate
        for candidate in candidates
        if candidate.name not in skipped
        and (
            ALL in wanted
            or (not wanted and (candidate.name in _USUAL or candidate.asked))
            or candidate.name in (*wanted, *given)
            or (candidate.name.startswith(("mpicc", "oshcc")) and ON_MOBIUS not in candidate.name)
        )
    ]
    if not chosen and wanted:
        raise InstrumentError("--libs and --skip leave no library to measure")
    return chosen

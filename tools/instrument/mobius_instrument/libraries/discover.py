# SPDX-License-Identifier: BSD-3-Clause
"""All libraries of this machine, and the choice among them."""

from __future__ import annotations

from pathlib import Path

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


def choose(
    candidates: list[Candidate],
    wanted: list[str],
    skipped: list[str],
    given: tuple[str, ...] = (),
) -> list[Candidate]:
    """Applies `--libs` and `--skip`; libraries of `--mpicc` or `--oshcc`, and those `given`, are
    always chosen."""
    names = [candidate.name for candidate in candidates]
    for option, listed in (("--libs", wanted), ("--skip", skipped)):
        for name in listed:
            if name not in names:
                raise InstrumentError(
                    f"{option}: no library '{name}' here; there are {', '.join(names)}"
                )
    chosen = [
        candidate
        for candidate in candidates
        if candidate.name not in skipped
        and (
            not wanted
            or candidate.name in (*wanted, *given)
            or (candidate.name.startswith(("mpicc", "oshcc")) and ON_MOBIUS not in candidate.name)
        )
    ]
    if not chosen:
        raise InstrumentError("--libs and --skip leave no library to measure")
    return chosen

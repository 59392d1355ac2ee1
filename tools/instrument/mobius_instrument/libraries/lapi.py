# SPDX-License-Identifier: BSD-3-Clause
"""LAPI on Möbius: the front, measured as the programs of paper 1 used LAPI."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mobius_instrument.libraries.base import (
    PROCESSES,
    Candidate,
    Context,
    Library,
    between_hosts,
    cells,
    hash_files,
    missing,
)
from mobius_instrument.libraries.mobius import hosts_environment, run_on_hosts
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.results import LibraryRecord

# A get signals its target too early for a ping-pong, so gets are measured from one side; so did
# paper 1.
LAPI_CELLS: Final = (
    *cells("pingpong", ("put",), ("flush",), ("allocate", "create")),
    *cells("completion", ("put", "get"), ("flush",), ("allocate", "create")),
)


def candidates(locations: Locations) -> list[Candidate]:
    """The front, built or not."""
    return [
        Candidate(
            name="lapi",
            description="LAPI on this Möbius: counters, static memory and that of malloc()",
            present=bool(locations.program("mobius") and locations.program("suite_lapi")),
            prepare=_prepare,
        )
    ]


def _prepare(context: Context) -> Library:
    locations = context.locations
    programs = {}
    for name in ("mobius", "suite_lapi"):
        program = locations.program(name)
        if program is None:
            return missing(
                "lapi",
                "LAPI on Möbius",
                "front",
                f"{name} is not in {locations.searched}; run `mobius build`",
            )
        programs[name] = program
    suite = programs["suite_lapi"]
    roots = suite.parents[1:3]
    shared = sorted(
        path
        for root in roots
        for pattern in ("lib*/lib*.so*", "lib*/*/liblapi_r.so*")
        for path in root.glob(pattern)
    )
    mobius = str(programs["mobius"])
    launcher = (mobius, "run", "-n", str(PROCESSES), "--bind", "none")
    library = Library(
        record=LibraryRecord(
            library="lapi",
            label="LAPI on Möbius",
            version="",
            kind="front",
            status="ready",
            launcher=" ".join(("mobius", *launcher[1:])),
        ),
        cells=LAPI_CELLS,
        fingerprint=hash_files(*programs.values(), *shared),
        suite=lambda how: (mobius, "run", "-n", str(how.processes), "--bind", "none", str(suite)),
        suite_kind="lapi",
    )

    def between(hosts: Hosts) -> Library:
        return between_hosts(
            library,
            hosts,
            lambda how: run_on_hosts(mobius, hosts, how.processes),
            suite,
            hosts_environment(hosts),
        )

    return replace(library, between=between)

# SPDX-License-Identifier: BSD-3-Clause
"""LAPI on Möbius: the front, measured as the programs of paper 1 used LAPI."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mobius_instrument.libraries.base import Candidate, Context, Library, cells, hash_files
from mobius_instrument.libraries.own import absent, shared_libraries, started_by_mobius
from mobius_instrument.locations import Locations
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
    mobius, suite = locations.program("mobius"), locations.program("suite_lapi")
    if mobius is None or suite is None:
        program = "mobius" if mobius is None else "suite_lapi"
        return absent("lapi", "LAPI on Möbius", "front", program, locations)
    parts = shared_libraries(suite, "liblapi*.so*", "libmobius*.so*")
    library = Library(
        record=LibraryRecord("lapi", "LAPI on Möbius", "", "front", "ready"),
        cells=LAPI_CELLS,
        fingerprint=hash_files(mobius, suite, *parts),
        suite_kind="lapi",
    )
    return replace(started_by_mobius(library, mobius, suite), by_messages=None)

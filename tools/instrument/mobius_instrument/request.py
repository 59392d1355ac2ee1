# SPDX-License-Identifier: BSD-3-Clause
"""What a command line asks for.

Like everything that `--help` and `bench --list` import, this needs the standard library alone: both
answer in a checkout that was not set up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mobius_instrument.cells import EXPERIMENTS
from mobius_instrument.errors import InstrumentError
from mobius_instrument.experiments import APPLICATIONS, Effort
from mobius_instrument.libraries import armci, global_arrays
from mobius_instrument.libraries.base import Candidate
from mobius_instrument.libraries.described import Description
from mobius_instrument.libraries.discover import discover
from mobius_instrument.locations import Locations
from mobius_instrument.plan import DEFAULT_EFFORT, FULL_EFFORT

DEFAULT_STALL_S: Final = 30.0


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    out: Path
    experiments: tuple[str, ...] = tuple(EXPERIMENTS)
    wanted: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    mpiccs: tuple[Path, ...] = ()
    install: bool = True
    intel: bool = False
    sizes: tuple[int, ...] = ()
    repeats: int | None = None
    full: bool = False
    fresh: bool = False
    stall_s: float = DEFAULT_STALL_S
    seed: int = 1
    budget_s: float | None = None
    descriptions: tuple[Description, ...] = ()
    oshccs: tuple[Path, ...] = ()
    variants: bool = False
    # As `--hosts`, `--agent` and `--interface` say.
    hosts: str = ""
    agent: str = ""
    interface: str = ""

    @property
    def effort(self) -> Effort:
        """How long and how often to measure."""
        effort = FULL_EFFORT if self.full else DEFAULT_EFFORT
        if self.repeats is None:
            return effort
        return Effort(self.repeats, effort.min_samples, effort.max_seconds)


def find_candidates(request: Request, locations: Locations) -> list[Candidate]:
    """The libraries that the request may measure."""
    intel = request.intel or "intel" in request.wanted
    found = discover(
        locations, request.mpiccs, request.install, intel, request.descriptions,
        request.oshccs, request.variants,
    )  # fmt: skip
    if request.intel and all(candidate.name != "intel" for candidate in found):
        raise InstrumentError(
            "--intel: Intel MPI is not installed, and --no-peers forbids to install it; leave one"
            " of the two out"
        )
    if global_arrays.NAME in request.experiments and not request.wanted:
        return [_for_applications(one) if one.name in armci.NAMES else one for one in found]
    return found


def _for_applications(candidate: Candidate) -> Candidate:
    """The experiment on Global Arrays brings each ARMCI, for the applications alone."""
    return replace(
        candidate,
        asked=True,
        prepare=lambda context: replace(candidate.prepare(context), only=APPLICATIONS),
    )

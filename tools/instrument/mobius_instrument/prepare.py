# SPDX-License-Identifier: BSD-3-Clause
"""Finds the libraries of a run and makes them ready."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from mobius_instrument.errors import InstrumentError
from mobius_instrument.libraries.base import ON_MOBIUS, Candidate, Context, Library
from mobius_instrument.libraries.discover import USUAL_MPIS, choose, usual_mpis
from mobius_instrument.locations import locate
from mobius_instrument.machine.host import allowed_cpus
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.progress import say
from mobius_instrument.request import Request, find_candidates


def prepare_libraries(request: Request, hosts: Hosts | None, console: Console) -> list[Library]:
    """All libraries of the request, ready or with the reason why not."""
    locations = locate()
    candidates = find_candidates(request, locations)
    given = tuple(one.name for one in request.descriptions)
    chosen = choose(candidates, list(request.wanted), list(request.skipped), given)
    context = Context(locations, lambda text: say(console, text), len(allowed_cpus()))
    libraries = [_prepared(candidate, context, console) for candidate in chosen]
    if not request.wanted:
        libraries += _usual_mpis(
            candidates, {one.name for one in chosen}, request, context, console
        )
        place = {candidate.name: number for number, candidate in enumerate(candidates)}
        libraries.sort(key=lambda library: place.get(library.name, len(place)))
    if hosts is None:
        return libraries
    ready = [library for library in libraries if library.ready]
    between = [library.between(hosts) for library in ready if library.between is not None]
    if not between:
        raise InstrumentError("--hosts: none of the libraries can be started on several hosts")
    return [*libraries, *between]


def _prepared(candidate: Candidate, context: Context, console: Console) -> Library:
    library = candidate.prepare(context)
    if not library.ready:
        record = library.record
        say(console, f"{record.label}: {record.status.replace('-', ' ')}: {record.detail}")
    return library


def _usual_mpis(
    candidates: Sequence[Candidate],
    chosen: set[str],
    request: Request,
    context: Context,
    console: Console,
) -> list[Library]:
    """The first MPIs that can be measured, and each of them on Möbius."""
    libraries: list[Library] = []
    usable = 0
    for candidate in usual_mpis(list(candidates)):
        if usable == USUAL_MPIS or candidate.name in (*chosen, *request.skipped):
            continue
        library = _prepared(candidate, context, console)
        libraries.append(library)
        usable += library.ready
        fronted = candidate.name + ON_MOBIUS
        libraries += [
            _prepared(other, context, console)
            for other in candidates
            if library.ready and other.name == fronted and fronted not in request.skipped
        ]
    return libraries

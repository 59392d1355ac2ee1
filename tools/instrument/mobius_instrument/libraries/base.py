# SPDX-License-Identifier: BSD-3-Clause
"""The types that describe a library to the session."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mobius_instrument.cells import Cell
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import BETWEEN, Hosts
from mobius_instrument.results import LibraryRecord

PROCESSES: Final = 2
_TWO_JOBS: Final = Path(__file__).resolve().parents[1] / "two_jobs.py"
_APPLICATION: Final = Path(__file__).resolve().parents[1] / "application.py"
# The suffix of the name of an MPI whose windows are on Möbius.
ON_MOBIUS: Final = "+mobius"
# Open MPI's mpirun requires these of root.
AS_ROOT: Final = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")


@dataclass(frozen=True)
class Start:
    """How to start the test-suite."""

    processes: int = PROCESSES
    # Processes that run in the end, including spawned ones.
    together: int = PROCESSES
    # Processes that were not started together meet: spawned ones, or by the name of a port.
    dynamic: bool = False
    # Two equal jobs meet (two_jobs.py).
    two_jobs: bool = False
    # Between hosts: all processes on the host with this number; None: on all hosts, in blocks.
    host: int | None = None


@dataclass(frozen=True)
class Library:
    """A library made ready, or why it could not be.

    `cells` are those of `pingpong` and `completion`; experiments.py knows those of all others.
    `fingerprint` changes when the measured code does, so that old results are not taken for those
    of new code.
    """

    record: LibraryRecord
    cells: tuple[Cell, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    # Starts the test-suite when its arguments are appended; None if the library has none.
    suite: Callable[[Start], tuple[str, ...]] | None = None
    # The blocks of the suite: "mpi", "mobius", "shmem", "upc", "armci", "lapi" or "limits".
    suite_kind: str = ""
    # As `suite`, but the processes of this host share no memory and send messages to each other;
    # None if the library has no such setting.
    by_messages: Callable[[int], tuple[str, ...]] | None = None
    # The environment of by_messages().
    messages_environment: Mapping[str, str] = field(default_factory=dict)
    # As `suite`, with processes on several hosts (between_hosts()); None if impossible.
    between: Callable[[Hosts], Library] | None = None
    # The hosts of the processes; None: all on this host.
    hosts: Hosts | None = None
    # Starts applications (apps/) by name; those that this library has.
    applications: Mapping[str, Callable[[Start], tuple[str, ...]]] = field(default_factory=dict)
    # The same library with its windows on Möbius; None if there is no front for it.
    fronted: Callable[[], Library] | None = None
    # The experiments that it is measured in; empty: all.
    only: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The short name, for `--libs`."""
        return self.record.library

    @property
    def ready(self) -> bool:
        """Whether it can be launched."""
        return self.record.status == "ready"


@dataclass(frozen=True)
class Context:
    """What preparing a library may use. `announce` prints a line about a step that takes long."""

    locations: Locations
    announce: Callable[[str], None]
    cpus: int


@dataclass(frozen=True)
class Candidate:
    """A library that may be measured; `prepare` installs and builds what it needs."""

    name: str
    description: str
    present: bool
    prepare: Callable[[Context], Library]
    # An option of the command line asks for it, without its name.
    asked: bool = False


def missing(name: str, label: str, kind: str, detail: str) -> Library:
    """A library that is missing, and the reason."""
    return Library(LibraryRecord(name, label, "", kind, "missing", detail))


def cells(
    experiment: str, operations: Sequence[str], syncs: Sequence[str], memories: Sequence[str]
) -> tuple[Cell, ...]:
    """All combinations of synchronisations and memories."""
    return tuple(
        Cell(experiment, operation, sync, memory)
        for operation in operations
        for sync in syncs
        for memory in memories
    )


def between_hosts(
    library: Library,
    hosts: Hosts,
    start: Callable[[Start], tuple[str, ...]],
    suite: Path,
    environment: Mapping[str, str],
    server: Sequence[str] = (),
) -> Library:
    """A library as it is measured between hosts. `start` makes the words that start a program
    there when it is appended; `server` is that of as_two_jobs()."""
    record = replace(
        library.record,
        library=library.name + BETWEEN,
        label=f"{library.record.label}, between hosts",
        launcher=" ".join(start(Start())),
        hosts=",".join(hosts.names),
    )

    def start_suite(how: Start) -> tuple[str, ...]:
        if how.two_jobs:
            jobs = [(*start(replace(how, host=number)), str(suite)) for number in (0, 1)]
            return *hosts.enter, *as_two_jobs(jobs[0], jobs[1], server)
        away = ("--spawn-on", hosts.names[1]) if how.together > how.processes else ()
        link = ("--interface", hosts.interface) if hosts.interface else ()
        return *hosts.enter, *start(how), str(suite), *away, *link

    return replace(
        library,
        record=record,
        environment={**library.environment, **environment},
        fingerprint=f"{library.fingerprint}|{hosts.names}|{hosts.rate}",
        suite=start_suite,
        by_messages=None,
        applications={},
        between=None,
        fronted=None,
        hosts=hosts,
    )


def as_two_jobs(
    first: Sequence[str], second: Sequence[str], server: Sequence[str] = ()
) -> tuple[str, ...]:
    """Starts two jobs that meet. A server gets a file to write into; its content replaces
    `{server}` in the commands."""
    before = ("--server", shlex.join(server)) if server else ()
    return sys.executable, str(_TWO_JOBS), *before, shlex.join(first), shlex.join(second)


def application_command(start: Sequence[str], build: Sequence[str] = ()) -> tuple[str, ...]:
    """Runs an application with the command line of the test-suite (application.py). `start` starts
    it in processes; `build` compiles its last word where that is missing."""
    return sys.executable, str(_APPLICATION), shlex.join(start), shlex.join(build)


def hash_files(*paths: Path) -> str:
    """A hash over names and contents; a file that cannot be read counts by its name."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0")
        try:
            digest.update(path.read_bytes())
        except OSError:
            digest.update(b"unreadable")
    return digest.hexdigest()[:16]

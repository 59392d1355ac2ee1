# SPDX-License-Identifier: BSD-3-Clause
"""Möbius itself and the limits, whose programs this project's build makes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from mobius_instrument.libraries.base import (
    AS_ROOT,
    PROCESSES,
    Candidate,
    Context,
    Library,
    Start,
    application_command,
    as_two_jobs,
    between_hosts,
    cells,
    hash_files,
    missing,
)
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import Hosts
from mobius_instrument.machine.processes import clean_environment
from mobius_instrument.results import LibraryRecord

MOBIUS_CELLS: Final = (
    *cells("pingpong", ("put", "get"), ("flush",), ("allocate", "create")),
    *cells("completion", ("put", "get"), ("flush",), ("allocate", "create")),
)
LIMIT_CELLS: Final = (
    *cells("pingpong", ("line",), ("none",), ("local",)),
    *cells("completion", ("copy",), ("none",), ("local",)),
)


def candidates(locations: Locations) -> list[Candidate]:
    """Möbius and the limits, built or not."""
    return [
        Candidate(
            name="mobius",
            description="this Möbius",
            present=bool(locations.program("mobius") and locations.program("suite_mobius")),
            prepare=_prepare_mobius,
        ),
        Candidate(
            name="limits",
            description="the limits: two processes exchanging a cache line, memcpy",
            present=bool(locations.program("suite_limits")),
            prepare=_prepare_limits,
        ),
    ]


def _absent(name: str, label: str, kind: str, program: str, locations: Locations) -> Library:
    return missing(
        name, label, kind, f"{program} is not in {locations.searched}; run `mobius build`"
    )


def _prepare_mobius(context: Context) -> Library:
    locations = context.locations
    programs = {}
    for name in ("mobius", "suite_mobius"):
        program = locations.program(name)
        if program is None:
            return _absent("mobius", "Möbius", "mobius", name, locations)
        programs[name] = program
    version = _version(programs["mobius"])
    # BUILD/bin and BUILD/lib, or PREFIX/libexec/mobius and PREFIX/lib[/ARCHITECTURE].
    suite = programs["suite_mobius"]
    roots = suite.parents[1:3]
    shared = sorted(
        path
        for root in roots
        for pattern in ("lib*/libmobius.so*", "lib*/*/libmobius.so*")
        for path in root.glob(pattern)
    )
    mobius = str(programs["mobius"])
    launcher = (mobius, "run", "-n", str(PROCESSES), "--bind", "none")

    def start_suite(how: Start) -> tuple[str, ...]:
        job = mobius, "run", "-n", str(how.processes), "--bind", "none", str(suite)
        return as_two_jobs(job, job) if how.two_jobs else job

    def by_messages(processes: int) -> tuple[str, ...]:
        return messages_on_one_host(mobius, processes, str(suite))

    apps = {name: locations.program(name) for name in ("lu", "md")}
    library = Library(
        record=LibraryRecord(
            library="mobius",
            label=f"Möbius {version}".strip(),
            version=version,
            kind="mobius",
            status="ready",
            launcher=" ".join(("mobius", *launcher[1:])),
        ),
        cells=MOBIUS_CELLS,
        fingerprint=hash_files(*programs.values(), *shared, *filter(None, apps.values())),
        suite=start_suite,
        suite_kind="mobius",
        by_messages=by_messages,
        applications=applications(mobius, apps),
    )

    def between(hosts: Hosts) -> Library:
        apart = between_hosts(
            library,
            hosts,
            lambda how: run_on_hosts(mobius, hosts, how.processes),
            suite,
            hosts_environment(hosts),
        )
        return replace(apart, applications=applications(mobius, apps, hosts))

    return replace(library, between=between)


def applications(
    mobius: str, programs: Mapping[str, Path | None], hosts: Hosts | None = None
) -> dict[str, Callable[[Start], tuple[str, ...]]]:
    """Those of the applications that there are, started by `mobius run`: by name, and on one host
    also with each process on a virtual host of its own."""
    found: dict[str, Callable[[Start], tuple[str, ...]]] = {}
    for name, program in programs.items():
        if program is None:
            continue

        def start(how: Start, path: str = str(program)) -> tuple[str, ...]:
            if hosts is not None:
                words = (*hosts.enter, *run_on_hosts(mobius, hosts, how.processes), path)
            else:
                words = (mobius, "run", "-n", str(how.processes), "--bind", "none", path)
            return application_command(words)

        def by_messages(how: Start, path: str = str(program)) -> tuple[str, ...]:
            return application_command(messages_on_one_host(mobius, how.processes, path))

        found[name] = start
        if hosts is None:
            found[f"{name}-by-messages"] = by_messages
    return found


def messages_on_one_host(mobius: str, processes: int, program: str) -> tuple[str, ...]:
    """Puts each process on a virtual host of its own: they share no memory and use the network's
    path."""
    count = str(processes)
    return mobius, "run", "-n", count, "--virtual-hosts", count, "--bind", "none", program


def run_on_hosts(mobius: str, hosts: Hosts, processes: int) -> tuple[str, ...]:
    """The words that start so many processes of a program on the hosts."""
    shares = ",".join(f"{name}:{count}" for name, count in hosts.blocks(processes))
    return mobius, "run", "--hosts", shares, "-n", str(processes), "--bind", "none"


def hosts_environment(hosts: Hosts) -> dict[str, str]:
    """The environment for `mobius run --hosts`, which starts a launcher of Open MPI or PRRTE."""
    found = {"OMPI_MCA_plm_rsh_agent": hosts.agent, "PRTE_MCA_plm_ssh_agent": hosts.agent}
    if os.geteuid() == 0:
        found |= dict.fromkeys(AS_ROOT, "1")
    return found | ({"MOBIUS_INTERFACE": hosts.interface} if hosts.interface else {})


def _version(program: Path) -> str:
    """The output of `mobius --version` without the name; empty if it is not usable."""
    try:
        done = subprocess.run(
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env=clean_environment({}),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stdout.split() if done.returncode == 0 else []
    return next((word.lstrip("v") for word in words if word.lstrip("v")[:1].isdigit()), "")


def _prepare_limits(context: Context) -> Library:
    program = context.locations.program("suite_limits")
    if program is None:
        return _absent("limits", "limit", "limit", "suite_limits", context.locations)
    threads = context.locations.program("lu-threads")
    return Library(
        record=LibraryRecord(
            library="limits",
            label="limit (cache lines, memcpy)",
            version="",
            kind="limit",
            status="ready",
        ),
        cells=LIMIT_CELLS,
        fingerprint=hash_files(program, *([threads] if threads else [])),
        suite=lambda _how: (str(program),),
        suite_kind="limits",
        applications={"lu": lambda _how: application_command((str(threads),))} if threads else {},
    )

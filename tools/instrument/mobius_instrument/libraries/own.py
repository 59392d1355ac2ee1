# SPDX-License-Identifier: BSD-3-Clause
"""How programs on this Möbius are found and started: of its own interface and of its fronts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mobius_instrument.libraries.base import (
    AS_ROOT,
    Library,
    Start,
    application_command,
    as_two_jobs,
    between_hosts,
    missing,
)
from mobius_instrument.locations import Locations
from mobius_instrument.machine.hosts import Hosts


def absent(name: str, label: str, kind: str, program: str, locations: Locations) -> Library:
    """A library of which this program was not built."""
    detail = f"{program} is not in {locations.searched}; run `mobius build`"
    return missing(name, label, kind, detail)


def shared_libraries(program: Path, *names: str) -> list[Path]:
    """The shared libraries that match `names`, of the build or the installation of a program:
    BUILD/bin and BUILD/lib, or PREFIX/libexec/mobius and PREFIX/lib[/ARCHITECTURE]."""
    return sorted(
        path
        for root in program.parents[1:3]
        for name in names
        for folder in ("lib*", "lib*/*")
        for path in root.glob(f"{folder}/{name}")
    )


def started_by_mobius(
    library: Library,
    mobius: Path,
    suite: Path,
    apps: Mapping[str, Path | None] | None = None,
    *,
    two_jobs: bool = False,
) -> Library:
    """Makes a library ready whose programs `mobius run` starts, on one host or on several.
    `two_jobs`: the suite also measures two jobs that connect."""
    run, program = str(mobius), str(suite)
    apps = apps or {}

    def start(how: Start) -> tuple[str, ...]:
        job = run, "run", "-n", str(how.processes), "--bind", "none", program
        return as_two_jobs(job, job) if two_jobs and how.two_jobs else job

    launcher = " ".join(("mobius", *start(Start())[1:-1]))
    ready = replace(
        library,
        record=replace(library.record, status="ready", launcher=launcher),
        suite=start,
        by_messages=lambda processes: messages_on_one_host(run, processes, program),
        applications={**applications(run, apps), **library.applications},
    )

    def between(hosts: Hosts) -> Library:
        apart = between_hosts(
            ready,
            hosts,
            lambda how: run_on_hosts(run, hosts, how.processes),
            suite,
            hosts_environment(hosts),
        )
        return replace(apart, applications=applications(run, apps, hosts))

    return replace(ready, between=between)


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

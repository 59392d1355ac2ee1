# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of `--hosts`: which they are, how processes get there, and the test bed.

Every library is measured on one host as without `--hosts`, and a second time with its processes
dealt out to the hosts in blocks, by its own launcher. That is a library of its own in the results,
named `NAME@hosts`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mobius_instrument.errors import InstrumentError
from mobius_instrument.locations import checkout_root
from mobius_instrument.machine.processes import clean_environment

# The suffix of the name of a library that is measured between hosts.
BETWEEN: Final = "@hosts"
TEST_BED: Final = "testbed"
_BED_HOSTS: Final = ("hosta", "hostb")
_BED_INTERFACE: Final = "v0"
_REACH_LIMIT_S: Final = 30.0
_BED_LIMIT_S: Final = 60.0


@dataclass(frozen=True)
class Hosts:
    """Hosts on which launchers can start processes; launchers run on the first one.

    `agent` is called like ssh. `enter` are words that, before a command, run it on the first host.
    `shared_files`: all hosts have the same files, including temporary ones.
    """

    names: tuple[str, ...]
    agent: str = "ssh"
    interface: str = ""
    enter: tuple[str, ...] = ()
    shared_files: bool = False
    # The rate of the links, if known: "1gbit".
    rate: str = ""

    def blocks(self, processes: int) -> list[tuple[str, int]]:
        """The hosts with their numbers of processes: ranks in blocks, more on the first hosts."""
        used = self.names[: max(processes, 1)]
        share, rest = divmod(processes, len(used))
        return [(name, share + (number < rest)) for number, name in enumerate(used)]

    @property
    def words(self) -> str:
        """The hosts in words for labels: "hosta and hostb"."""
        shown = self.names if len(self.names) < 4 else (*self.names[:2], "…", self.names[-1])
        return f"{', '.join(shown[:-1])} and {shown[-1]}"


def base_name(library: str) -> str:
    """The library that `NAME@hosts` is compared with."""
    return library.removesuffix(BETWEEN)


def is_between(library: str) -> bool:
    """Whether the library is measured between hosts."""
    return library.endswith(BETWEEN)


@contextmanager
def opened(text: str, agent: str, interface: str) -> Iterator[Hosts | None]:
    """The hosts that `--hosts` names, found reachable; for `testbed` a bed of two that is taken
    away in the end. None without `text`; InstrumentError says what is wrong with it."""
    if not text:
        if agent or interface:
            raise InstrumentError(
                f"{'--agent' if agent else '--interface'} is of use with --hosts only"
            )
        yield None
        return
    kind, _, rate = text.partition(":")
    if kind == TEST_BED:
        if agent or interface:
            raise InstrumentError(f"--hosts {TEST_BED} has an agent and an interface of its own")
        with _bed(rate) as hosts:
            yield hosts
        return
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or len(set(names)) < len(names):
        raise InstrumentError(
            f"--hosts: '{text}': at least two different hosts, as a,b; or {TEST_BED}, which makes"
            " two on this machine"
        )
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise InstrumentError(f"--hosts: '{name}' is no name of a host")
    program = shutil.which(agent or "ssh")
    if program is None:
        raise InstrumentError(
            f"--agent: there is no program '{agent}'"
            if agent
            else "--hosts needs ssh, or --agent with a program that is called as ssh is"
        )
    hosts = Hosts(names, str(Path(program).absolute()), interface)
    for name in names[1:]:
        _reach(hosts, name)
    yield hosts


def _reach(hosts: Hosts, name: str) -> None:
    batch = ["-o", "BatchMode=yes"] if Path(hosts.agent).name == "ssh" else []
    try:
        done = subprocess.run(
            [hosts.agent, *batch, name, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_REACH_LIMIT_S,
            check=False,
        )
        lines = done.stderr.strip().splitlines()
        failure = (lines or [f"exit code {done.returncode}"])[-1] if done.returncode else ""
    except subprocess.TimeoutExpired:
        failure = f"no answer within {_REACH_LIMIT_S:.0f} s"
    except OSError as error:
        failure = str(error)
    if failure:
        raise InstrumentError(
            f"--hosts: {name} cannot be reached: {failure}; `{hosts.agent} {name} true` must work"
            " without a password"
        )


def _bed_script() -> Path:
    root = checkout_root()
    script = root / "tests" / "hosts" / "bed.py" if root else None
    if script is None or not script.is_file():
        raise InstrumentError(
            f"--hosts {TEST_BED} needs tests/hosts/bed.py of a checkout of Möbius; name hosts"
            " instead: --hosts a,b"
        )
    return script


@contextmanager
def _bed(rate: str) -> Iterator[Hosts]:
    script, name = _bed_script(), f"instrument-{os.getpid()}"

    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, str(script), *words, "--name", name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_BED_LIMIT_S,
            check=False,
            env=clean_environment({}),
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise InstrumentError(f"--hosts {TEST_BED}: {lines[-1].removeprefix('SKIP: ')}")
        return done.stdout.strip()

    try:
        call("up", "--hosts", str(len(_BED_HOSTS)), *(["--rate", rate] if rate else []))
        yield Hosts(
            names=_BED_HOSTS,
            agent=call("agent"),
            interface=_BED_INTERFACE,
            enter=(sys.executable, str(script), "run", "--name", name, "--"),
            shared_files=True,
            rate=rate,
        )
    finally:
        call("down")

# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests between hosts: the bed, commands on its hosts, launchers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import bed as beds

ROOT = Path(__file__).resolve().parents[2]
HANG_SECONDS = 120  # far longer than any test here takes: only a hang gets there
# Open MPI 4's mpirun says this if the ssh that it starts runs before it has set its process group,
# and goes on.
WARNING_OF_MPIRUN = re.compile(r"^\[\S+\] plm:rsh: Warning: setpgid\(.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        """The lines that it printed, in an order that does not depend on timing."""
        return sorted(self.out.splitlines())


def program(name: str) -> str:
    """The path of a native program of the build under test."""
    folder = os.environ.get("MOBIUS_HOME_BIN") or str(ROOT / "build" / "release" / "bin")
    path = Path(folder) / name
    if not path.exists():
        path = ROOT / "build" / "release" / "bin" / name
    assert path.exists(), f"'{path}' is not built"
    return str(path)


def launcher(name: str) -> str:
    """The path of a launcher, or a skipped test."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no '{name}' on this machine")
    return path


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Build an environment without settings of Möbius, with the variables that mpirun needs for
    root.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
    return {**inherited, **beds.MPIRUN_BY_ROOT, **(changes or {})}


def run(
    words: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Ended:
    """Run a command to its end; if it hangs, end everything that it started."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(env),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=HANG_SECONDS)
    except BaseException:
        os.killpg(process.pid, 9)
        process.communicate()
        raise
    return Ended(process.returncode, out.decode(), WARNING_OF_MPIRUN.sub("", err.decode()))


def mpirun(bed: beds.Bed | None, hosts: str, *words: str) -> list[str]:
    """Words for Open MPI's mpirun, called on the first host of `bed` or on this machine."""
    path = launcher("mpirun.openmpi")
    if bed is None:
        return [path, "--oversubscribe", *hosts.split(), *words]
    start = [path, "--oversubscribe", "--mca", "plm_rsh_agent", str(bed.agent)]
    return bed.words([*start, "--host", hosts, *words])


def mpiexec(bed: beds.Bed, hosts: str, processes: int, *words: str) -> list[str]:
    """Words for MPICH's mpiexec, called on the first host of `bed`."""
    start = [launcher("mpiexec.mpich"), "-launcher", "ssh", "-launcher-exec", str(bed.agent)]
    start += ["-iface", beds.INTERFACE, "-hosts", hosts, "-n", str(processes)]
    return bed.words([*start, *words])

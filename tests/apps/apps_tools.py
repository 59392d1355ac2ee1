# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the applications share: starting them, and compiling them for an MPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("MOBIUS_HOME_BIN") or ROOT / "build" / "release" / "bin")
HANG_SECONDS = 570  # far beyond what anything here takes: only a hang gets there
Finished = subprocess.CompletedProcess[str]


def run(*words: object) -> Finished:
    """Run a command, which must succeed."""
    done = run_any(*words)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done


def run_any(*words: object) -> Finished:
    """Run a command."""
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def result_of(done: Finished) -> dict[str, Any]:
    """The line that --json prints."""
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def mobius(processes: int, program: str, *options: object, hosts: int = 1) -> dict[str, Any]:
    """The result of a program under `mobius run`."""
    where = ["--virtual-hosts", hosts] if hosts > 1 else []
    start = (BIN / "mobius", "run", "-n", processes, *where, BIN / program)
    return result_of(run(*start, *options, "--json"))


def mpich() -> tuple[str, str] | None:
    """MPICH's compiler and launcher, where it is installed."""
    found = shutil.which("mpicc.mpich"), shutil.which("mpiexec.mpich")
    return (found[0], found[1]) if found[0] and found[1] else None

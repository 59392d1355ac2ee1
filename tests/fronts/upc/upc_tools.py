# SPDX-License-Identifier: BSD-3-Clause
"""mobupcc of this checkout, and the programs built with it."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TRANSLATOR = ROOT / "fronts" / "upc" / "translator"
INCLUDES = (ROOT / "fronts" / "upc" / "include", ROOT / "include")
HANG_SECONDS = 120  # far beyond what anything here takes: only a hang gets there


def missing() -> str:
    """Why nothing can be translated here; "": it can."""
    if importlib.util.find_spec("clang") is None:
        return "the Python package libclang is not installed"
    return ""


def binaries() -> Path:
    """The folder of the command under test."""
    return Path(os.environ.get("MOBIUS_HOME_BIN") or ROOT / "build" / "release" / "bin")


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """All that it wrote, for messages."""
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> Finished:
    """Runs a command in a process group of its own, which does not outlive it."""
    environment = {**os.environ, "PYTHONPATH": str(TRANSLATOR), **variables}
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += "\nkilled: it hung"
    return Finished(process.returncode, out, err)


def mobupcc(folder: Path, *arguments: str | Path) -> Finished:
    """Runs mobupcc with the headers of the checkout and the libraries of its build."""
    lib = binaries().parent / "lib"
    libraries = (f"-L{lib}", f"-Wl,-rpath,{lib}", "-lmobius_upc", "-lmobius")
    return run(
        [
            *(sys.executable, "-m", "mobius_upc", folder),
            *(f"--mobius-include={include}" for include in INCLUDES),
            *(f"--mobius-library={library}" for library in libraries),
            *arguments,
        ],
        folder,
    )


def start(program: Path, threads: int, *options: str) -> Finished:
    """Runs a program on some threads."""
    return run(
        [binaries() / "mobius", "run", "-n", str(threads), *options, program], program.parent
    )

# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs of this machine, programs built with them, and the ways to start these."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
ROOT = HERE.parents[2]
HANG_SECONDS = 120  # far beyond what anything here takes: only a hang gets there
PEERS = ROOT / ".mobius" / "peers"
_OPEN_MPI = ("--oversubscribe", "--bind-to", "none")
_OPEN_MPI_5 = ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none")


def binaries() -> Path:
    """The folder of the command under test."""
    return Path(os.environ.get("MOBIUS_HOME_BIN") or ROOT / "build" / "release" / "bin")


def command() -> str:
    """Path of the command under test."""
    return str(binaries() / "mobius")


@dataclass(frozen=True)
class Finished:
    """How a job ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """All that it wrote, for messages."""
        return f"exit code {self.code}\n{self.out}\n{self.err}"


@dataclass(frozen=True)
class Mpi:
    """An MPI, found or not."""

    name: str
    front: str
    mpicc: str
    launcher: tuple[str, ...]
    fortran: str = ""
    python: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def library(self) -> Path:
        """The front for it."""
        return binaries().parent / "lib" / f"libmobius_{self.front}.so"

    @property
    def missing(self) -> str:
        """Why it cannot be used here; empty where it can."""
        for program in (self.mpicc, self.launcher[0]):
            if shutil.which(program) is None:
                return f"{self.name}: there is no {program}"
        if not self.library.is_file():
            return f"{self.name}: {self.library.name} was not built"
        done = subprocess.run(
            [self.mpicc, "-E", "-x", "c", "-"],
            input="#include <mpi.h>\n", capture_output=True, text=True, check=False,
        )  # fmt: skip
        return "" if done.returncode == 0 else f"{self.name}: {self.mpicc} finds no mpi.h"

    def compile(self, source: str, output: Path, *options: str) -> Path:
        """An ordinary program; `source` is a file of programs/."""
        fortran = source.lower().endswith(".f90")
        words = [self.fortran, "-J", str(output.parent)] if fortran else [self.mpicc, "-std=gnu11"]
        done = subprocess.run(
            [*words, "-O1", "-o", str(output), str(PROGRAMS / source), *options],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return output

    def start(
        self,
        count: int,
        *program: str | Path,
        before: Sequence[str] = (),
        words: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Finished:
        """`before` comes before the launcher, `words` are more options of it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MOBIUS_")}
        kept.pop("LD_PRELOAD", None)
        as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
        launcher = [self.launcher[0], "-n", str(count), *self.launcher[1:], *words]
        process = subprocess.Popen(
            [*before, *launcher, *map(str, program)],
            env={**kept, **as_root, **self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"the job hung\n{out}\n{err}") from None
        return Finished(process.returncode, out, err)

    def by_mobius(
        self,
        count: int,
        *program: str | Path,
        stats: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Finished:
        """As a user starts it: by `mobius mpirun`."""
        before = [command(), "mpirun", *(["--stats"] if stats else [])]
        return self.start(count, *program, before=before, env=env)


MPIS = {
    mpi.name: mpi
    for mpi in (
        Mpi(
            "openmpi", "ompi", str(PEERS / "openmpi/bin/mpicc"),
            (str(PEERS / "openmpi/bin/mpiexec"), *_OPEN_MPI_5),
            python=str(PEERS / "openmpi/bin/python"),
        ),
        Mpi(
            "mpich", "mpich", str(PEERS / "mpich/bin/mpicc"), (str(PEERS / "mpich/bin/mpiexec"),),
            python=str(PEERS / "mpich/bin/python"),
        ),
        Mpi(
            "standard-abi", "mpiabi", str(PEERS / "mpich/bin/mpicc_abi"),
            (str(PEERS / "mpich/bin/mpiexec"),),
        ),
        Mpi(
            "debian-openmpi", "ompi", "mpicc.openmpi", ("mpirun.openmpi", *_OPEN_MPI),
            fortran="mpif90.openmpi",
        ),
        Mpi("debian-mpich", "mpich", "mpicc.mpich", ("mpiexec.mpich",), fortran="mpif90.mpich"),
    )
}  # fmt: skip

# SPDX-License-Identifier: BSD-3-Clause
"""Programs that the launcher of an MPI library started on this host are one job."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from launch_tools import HANG_SECONDS, Launcher, command, python

LIBRARY = Path(command()).parents[1] / "lib" / "libmobius.so"

# Each rank puts its number into its right neighbour, which prints it.
PROGRAM = python(
    "import ctypes, os, sys",
    f"m = ctypes.CDLL({str(LIBRARY)!r})",
    "m.mob_last_error.restype = ctypes.c_char_p",
    "m.mob_mem_local.restype = ctypes.c_void_p",
    "def check(status):",
    "    if status != 0: sys.exit(f'{status}: {m.mob_last_error().decode()}')",
    "check(m.mob_init())",
    "rank, size = m.mob_rank(), m.mob_size()",
    "if 'die' in sys.argv and rank == 1: m.mob_abort(3, b'as asked')",
    "mem, at = ctypes.c_void_p(), ctypes.c_void_p()",
    "check(m.mob_mem_alloc(ctypes.c_size_t(4096), ctypes.byref(mem)))",
    "check(m.mob_mem_address(mem, (rank + 1) % size, ctypes.c_size_t(0), ctypes.byref(at)))",
    "check(m.mob_put8((rank + 1) % size, at, ctypes.c_uint64(100 + rank)))",
    "check(m.mob_barrier())",
    "got = ctypes.cast(m.mob_mem_local(ctypes.c_void_p(mem.value)),",
    "                  ctypes.POINTER(ctypes.c_uint64))[0]",
    "os.write(1, f'{rank} of {size} got {got}\\n'.encode())",
    "check(m.mob_finalize())",
)

# Words that start N processes, by the name of their MPI.
STARTERS = {
    "mpich": ("mpiexec.mpich", ["-n"]),
    "openmpi": ("mpirun.openmpi", ["--oversubscribe", "-n"]),
}


@pytest.fixture(autouse=True)
def _loadable() -> None:
    done = subprocess.run([command(), "info", "--json"], capture_output=True, check=False)
    if json.loads(done.stdout)["build"]["sanitizers"]:
        pytest.skip("Python cannot load a sanitized library")


def start(
    launcher: Launcher,
    mpi: str,
    size: int,
    program: Sequence[str],
    changes: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end under the launcher of an MPI, or skip."""
    starter, options = STARTERS[mpi]
    if shutil.which(starter) is None:
        pytest.skip(f"{starter} is not installed")
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(
        [starter, *options, str(size), *program],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**launcher.environment(changes), **allow},
        timeout=HANG_SECONDS,
        check=False,
    )


def lines_of(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What the ranks said; launchers may break lines and put in empty ones."""
    return sorted(re.findall(r"\d+ of \d+ got \d+", done.stdout.decode()))


def expected(size: int) -> list[str]:
    return [f"{rank} of {size} got {100 + (rank + size - 1) % size}" for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("mpi", STARTERS)
def test_processes_of_an_mpi_launcher_are_one_job(launcher: Launcher, mpi: str, size: int) -> None:
    done = start(launcher, mpi, size, PROGRAM)
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == expected(size)


@pytest.mark.parametrize("mpi", STARTERS)
def test_wrappers_do_not_matter(launcher: Launcher, mpi: str) -> None:
    # Rank 0 has none, the others two.
    script = (
        'if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ]; then exec "$@"; fi; '
        'sh -c \'"$@"; exit $?\' x "$@"; exit $?'
    )
    done = start(launcher, mpi, 3, ["sh", "-c", script, "x", *PROGRAM])
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == expected(3)


@pytest.mark.parametrize("mpi", STARTERS)
def test_one_program_after_the_other(launcher: Launcher, mpi: str) -> None:
    script = 'for program in 1 2 3 4 5; do "$@" || exit; done'
    done = start(launcher, mpi, 3, ["sh", "-c", script, "x", *PROGRAM])
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == sorted(5 * expected(3))


@pytest.mark.parametrize("mpi", STARTERS)
def test_without_the_launcher_if_asked(launcher: Launcher, mpi: str) -> None:
    done = start(launcher, mpi, 2, PROGRAM, {"MOBIUS_LAUNCHER": "none"})
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == 2 * expected(1)


@pytest.mark.parametrize("mpi", STARTERS)
def test_jobs_of_our_launcher_within_one(launcher: Launcher, mpi: str) -> None:
    done = start(launcher, mpi, 2, [command(), "run", "-n", "2", *PROGRAM])
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == sorted(2 * expected(2))


@pytest.mark.parametrize("mpi", STARTERS)
def test_an_abort_ends_all(launcher: Launcher, mpi: str) -> None:
    done = start(launcher, mpi, 3, [*PROGRAM, "die"])
    assert done.returncode != 0
    assert b"as asked" in done.stderr


def test_several_jobs_at_once_do_not_meet(launcher: Launcher) -> None:
    # Launchers are told apart by their process, whatever the ranks are told.
    variables = {"PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
    started = "\n".join(
        (
            "import os, subprocess, sys",
            "ranks = [subprocess.Popen(sys.argv[1:], env={**os.environ, 'PMI_RANK': str(rank)})",
            "         for rank in range(2)]",
            "sys.exit(max([rank.wait() for rank in ranks]))",
        )
    )
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", started, *PROGRAM],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**launcher.environment(), **variables},
        )
        for _ in range(4)
    ]
    for job in jobs:
        out, err = job.communicate(timeout=HANG_SECONDS)
        assert job.returncode == 0, err
        assert sorted(out.decode().splitlines()) == expected(2)


def test_a_launch_on_several_hosts_is_refused(launcher: Launcher) -> None:
    done = subprocess.run(
        PROGRAM,
        capture_output=True,
        env={
            **launcher.environment(),
            "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        },
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert b"started 4 processes, and on this host 2" in done.stderr

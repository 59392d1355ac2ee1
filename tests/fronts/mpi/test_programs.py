# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs that check one-sided communication in detail; they pass without the front, too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("mpi_tools")

if TYPE_CHECKING:
    from mpi_tools import Mpi

PROGRAMS = ("basics", "datatypes", "updates", "errors", "progress", "communicators", "threads")


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(mpi: Mpi, program: str, count: int, tmp_path: Path) -> None:
    binary = mpi.compile(f"{program}.c", tmp_path / program)
    done = mpi.by_mobius(count, binary)
    assert done.code == 0, done.told
    assert f"{program} passed" in done.out, done.told
    if "SKIP: " in done.out:
        pytest.skip(done.out.partition("SKIP: ")[2].splitlines()[0])


def test_one_thread_at_a_time_makes_or_frees_windows_of_the_mpi(mpi: Mpi, tmp_path: Path) -> None:
    """MPICH's table of windows breaks otherwise, about once in 2,000 runs of this program."""
    binary = mpi.compile("threads.c", tmp_path / "threads")
    watch = mpi.compile("one_at_a_time.c", tmp_path / "watch.so", "-shared", "-fPIC")
    done = mpi.by_mobius(2, binary, env={"LD_PRELOAD": str(watch)})
    assert done.code == 0, done.told
    if "SKIP: " in done.out:
        pytest.skip(done.out.partition("SKIP: ")[2].splitlines()[0])
    assert "threads passed" in done.out, done.told


@pytest.mark.parametrize(
    "count", [2, pytest.param(1, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]
)
def test_freed_windows_leave_parts_to_the_next_ones(mpi: Mpi, count: int, tmp_path: Path) -> None:
    """Else each needs a new window of the MPI; what a program gave to a window ends with it."""
    binary = mpi.compile("again.c", tmp_path / "again")
    counting = mpi.compile("count_made.c", tmp_path / "count_made.so", "-shared", "-fPIC")
    done = mpi.by_mobius(count, binary, "as-new", env={"LD_PRELOAD": str(counting)})
    assert done.code == 0, done.told
    assert "again passed" in done.out, done.told
    counted = re.findall(r"the MPI made (\d+) windows and freed (\d+)", done.err)
    assert len(counted) == count, done.told
    # 199 windows over three communicators.
    assert all(int(made) == int(freed) < 40 for made, freed in counted), done.told


def skip_without_sessions(mpi: Mpi) -> None:
    if mpi.name == "debian-openmpi":
        pytest.skip("Open MPI 4 has no sessions")


@pytest.mark.parametrize("count", [1, 3])
def test_sessions(mpi: Mpi, count: int, tmp_path: Path) -> None:
    skip_without_sessions(mpi)
    if mpi.name == "debian-mpich" and count == 1:
        pytest.skip("MPICH 4.0.2 itself crashes in a session of one process")
    binary = mpi.compile("sessions.c", tmp_path / "sessions")
    done = mpi.by_mobius(count, binary, stats=True)
    assert done.code == 0, done.told
    assert "sessions passed" in done.out, done.told
    assert done.err.count("4 MPI windows served\n") == count, done.told


def test_sessions_of_an_mpi_that_says_it_is_initialised(mpi: Mpi, tmp_path: Path) -> None:
    """As Intel MPI does; the job then had no end."""
    skip_without_sessions(mpi)
    binary = mpi.compile("sessions.c", tmp_path / "sessions")
    other = mpi.compile("says_initialized.c", tmp_path / "other.so", "-shared", "-fPIC")
    done = mpi.by_mobius(2, binary, env={"LD_PRELOAD": str(other)}, stats=True)
    assert done.code == 0, done.told
    assert "sessions passed" in done.out, done.told
    assert done.err.count("4 MPI windows served\n") == 2, done.told


def test_sessions_without_memory_leave_no_session_open(mpi: Mpi, tmp_path: Path) -> None:
    skip_without_sessions(mpi)
    if mpi.name == "debian-mpich":
        pytest.skip("MPICH 4.0.2 itself is wrong in windows of MPI_Win_allocate()")
    binary = mpi.compile("sessions.c", tmp_path / "sessions")
    done = mpi.by_mobius(2, binary, "memory", stats=True)
    assert done.code == 0, done.told
    assert "sessions passed" in done.out, done.told
    assert done.err.count(": 0 MPI windows served, 4 left to the MPI (a process may not ") == 2


def test_a_window_that_is_not_freed_is_told_at_the_end(mpi: Mpi, tmp_path: Path) -> None:
    binary = mpi.compile("endings.c", tmp_path / "endings")
    done = mpi.by_mobius(2, binary, "live")
    assert done.code == 0, done.told
    assert "endings passed" in done.out, done.told
    assert done.err.count("the MPI ends with windows that were not freed") == 2, done.told


def test_a_process_that_dies_in_an_epoch_ends_the_job(mpi: Mpi, tmp_path: Path) -> None:
    binary = mpi.compile("endings.c", tmp_path / "endings")
    done = mpi.by_mobius(3, binary, "dead")
    assert done.code != 0, done.told
    assert "without one process" not in done.out, done.told


@pytest.mark.parametrize(("refused", "served"), [("copy", 1), ("memory", 0)])
def test_the_kernel_refuses_a_system_call(
    mpi: Mpi, refused: str, served: int, tmp_path: Path
) -> None:
    """Without copies between processes the owner copies; without memory there is no job."""
    binary = mpi.compile("confined.c", tmp_path / "confined")
    done = mpi.by_mobius(2, binary, refused, stats=True)
    assert done.code == 0, done.told
    assert "confined passed" in done.out, done.told
    assert done.err.count(f": {served} MPI windows served") == 2, done.told
    assert served or done.err.count("1 left to the MPI (a process may not make ") == 2, done.told


@pytest.mark.slow
@pytest.mark.parametrize("how", ["one", "without", pytest.param("several", marks=pytest.mark.full)])
def test_spawned_processes(mpi: Mpi, how: str, tmp_path: Path) -> None:
    """Their own windows are served; those that they share with their parents are the MPI's."""
    if mpi.name.startswith("debian"):
        pytest.skip(f"{mpi.name} alone is wrong or fails in windows of spawned processes")
    binary = mpi.compile("spawned.c", tmp_path / "spawned")
    done = mpi.by_mobius(2, binary, how, stats=True)
    assert done.code == 0, done.told
    assert "spawned passed" in done.out, done.told
    assert "child passed" in done.out, done.told
    said = ": 2 MPI windows served, 2 left to the MPI (with processes that were not there"
    assert done.err.count(said) == (2 if how == "without" else 4), done.told


def test_a_job_of_programs_with_and_without_windows(mpi: Mpi, tmp_path: Path) -> None:
    """All processes join the job, which began in MPI_Init() of one program and hung there."""
    maker = mpi.compile("own_window.c", tmp_path / "own_window")
    other = mpi.compile("no_windows.c", tmp_path / "no_windows")
    done = mpi.by_mobius(1, other, ":", "-n", "1", maker, stats=True)
    assert done.code == 0, done.told
    assert "2 processes without windows" in done.out, done.told
    assert done.err.count(": 1 MPI windows served") == 1, done.told


@pytest.mark.full
def test_disconnected_communicators_leave_no_memory_behind(mpi: Mpi, tmp_path: Path) -> None:
    """The team of each takes a piece of 2 MiB of the window."""
    binary = mpi.compile("disconnected.c", tmp_path / "disconnected")
    done = mpi.by_mobius(2, binary, stats=True, env={"MOBIUS_WINDOW_BYTES": "64M"})
    assert done.code == 0, done.told
    assert "disconnected passed" in done.out, done.told
    assert done.err.count("40 MPI windows served\n") == 2, done.told


def test_fortran(mpi: Mpi, tmp_path: Path) -> None:
    if not mpi.fortran:
        pytest.skip(f"{mpi.name} has no Fortran")
    binary = mpi.compile("fortran_windows.f90", tmp_path / "fortran_windows")
    done = mpi.by_mobius(2, binary)
    assert done.code == 0, done.told
    assert "fortran_windows passed" in done.out, done.told

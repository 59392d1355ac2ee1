# SPDX-License-Identifier: BSD-3-Clause
"""Unchanged MPI programs with their windows on Möbius, by each way there is to start them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_tools import MPIS, PROGRAMS, Mpi

OTHERS = {"ompi": "mpich", "mpich": "ompi", "mpiabi": "mpich"}


@pytest.mark.parametrize("count", [1, 2, 4])
def test_by_mobius_mpirun(mpi: Mpi, windows: Path, count: int) -> None:
    done = mpi.by_mobius(count, windows, stats=True)
    assert done.code == 0, done.told
    assert f"windows of {count} processes are right" in done.out, done.told
    assert f"windows by libmobius_{mpi.front}" in done.err
    # The operations were Möbius': its table counts them.
    assert "operations by target" in done.err, done.told


def test_preloaded_by_hand(mpi: Mpi, windows: Path) -> None:
    done = mpi.start(2, windows, env={"LD_PRELOAD": str(mpi.library), "MOBIUS_STATS": "1"})
    assert done.code == 0, done.told
    assert "windows of 2 processes are right" in done.out, done.told
    assert "operations by target" in done.err, done.told


def test_linked_before_the_mpi(mpi: Mpi, tmp_path: Path) -> None:
    folder = mpi.library.parent
    options = ["-Wl,--no-as-needed", f"-L{folder}", f"-lmobius_{mpi.front}", f"-Wl,-rpath,{folder}"]
    program = mpi.compile("windows.c", tmp_path / "linked", *options)
    done = mpi.start(2, program, env={"MOBIUS_STATS": "1"})
    assert done.code == 0, done.told
    assert "windows of 2 processes are right" in done.out, done.told
    assert "operations by target" in done.err, done.told
    # Nothing more is preloaded then.
    assert "which it is linked with" in mpi.by_mobius(2, program).err


@pytest.mark.parametrize("how", ["by path", pytest.param("by -Bstatic", marks=pytest.mark.full)])
def test_a_front_within_the_program(mpi: Mpi, how: str, tmp_path: Path) -> None:
    archives = [mpi.library.with_suffix(".a"), mpi.library.with_name("libmobius.a")]
    for archive in archives:
        if not archive.is_file():
            pytest.skip(f"{archive.name} was not built")
    words = [*map(str, archives), "-lstdc++"]
    if how == "by -Bstatic":
        names = [f"-lmobius_{mpi.front}", "-lmobius"]
        folder = f"-L{mpi.library.parent}"
        words = [folder, "-Wl,-Bstatic", *names, "-Wl,-Bdynamic", "-lstdc++"]
    program = mpi.compile("windows.c", tmp_path / "holds", *words)
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libmobius" not in needed
    done = mpi.start(2, program, env={"MOBIUS_STATS": "1"})
    assert done.code == 0, done.told
    assert "windows of 2 processes are right" in done.out, done.told
    assert "operations by target" in done.err, done.told


@pytest.mark.parametrize("interface", ["MPIF_H", "USE_MPI", "USE_MPI_F08"])
def test_fortran(mpi: Mpi, tmp_path: Path, interface: str) -> None:
    if shutil.which(mpi.fortran) is None:
        pytest.skip(f"{mpi.name}: no Fortran")
    program = mpi.compile("interfaces.F90", tmp_path / "interfaces", f"-D{interface}")
    done = mpi.by_mobius(2, program, stats=True)
    assert done.code == 0, done.told
    assert "windows of 2 processes are right" in done.out, done.told
    assert "operations by target" in done.err, done.told


def test_mpi4py(mpi: Mpi) -> None:
    found = [mpi.python, "-c", "import mpi4py"]
    if not mpi.python or subprocess.run(found, capture_output=True).returncode:
        pytest.skip(f"{mpi.name}: no mpi4py")
    done = mpi.by_mobius(2, mpi.python, PROGRAMS / "windows_mpi4py.py", stats=True)
    assert done.code == 0, done.told
    assert "windows of 2 processes are right" in done.out, done.told
    assert "operations by target" in done.err, done.told


def test_a_program_without_windows_makes_no_job(mpi: Mpi, tmp_path: Path) -> None:
    program = mpi.compile("no_windows.c", tmp_path / "no_windows")
    done = mpi.by_mobius(2, program, stats=True)
    assert done.code == 0, done.told
    assert "2 processes without windows" in done.out
    assert "operations by target" not in done.err


def test_the_front_of_another_mpi(mpi: Mpi, windows: Path) -> None:
    wrong = mpi.library.with_name(f"libmobius_{OTHERS[mpi.front]}.so")
    if not wrong.is_file():
        pytest.skip(f"{wrong.name} was not built")
    done = mpi.start(2, windows, env={"LD_PRELOAD": str(wrong)})
    said = [line for line in done.err.splitlines() if wrong.name.removesuffix(".so") in line]
    assert said, done.told
    assert f"libmobius_{mpi.front}" in said[0]  # the right one


def test_two_fronts_at_once(mpi: Mpi, windows: Path) -> None:
    other = mpi.library.with_name(f"libmobius_{OTHERS[mpi.front]}.so")
    if not other.is_file():
        pytest.skip(f"{other.name} was not built")
    done = mpi.start(2, windows, env={"LD_PRELOAD": f"{mpi.library}:{other}"})
    said = [line for line in done.err.splitlines() if line.startswith(f"{other.stem}: ")]
    assert said, done.told
    assert mpi.library.stem in said[0]  # the right one


@pytest.mark.parametrize("name", sorted({mpi.front for mpi in MPIS.values()}))
def test_no_name_of_an_mpi_is_needed(name: str) -> None:
    """A preloaded front is in every process of a job, also in those that have no MPI."""
    library = next(mpi.library for mpi in MPIS.values() if mpi.front == name)
    if not library.is_file():
        pytest.skip(f"{library.name} was not built")
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert [n for n in names if n.lower().startswith(("mpi_", "pmpi_", "ompi_", "mpir_"))] == []
    done = subprocess.run(
        ["sh", "-c", "echo fine"],
        env={"LD_PRELOAD": str(library)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")

# SPDX-License-Identifier: BSD-3-Clause
"""The program of Global Arrays is right over our ARMCI, and over Debian's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from apps_tools import BIN, ROOT, result_of, run, run_any

LIBRARIES = BIN.parent / "lib"
OURS = (f"-L{LIBRARIES}", "-larmci", "-lmobius", f"-Wl,-rpath,{LIBRARIES}")
# MPICH 4.0 reads wrong places of memory that MPI_Win_allocate() makes (apps/ga/README.md).
BEFORE = ("env", "ARMCI_USE_WIN_ALLOCATE=0", "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")  # fmt: skip
LAUNCHES = {"mpich": (), "openmpi": ("--oversubscribe", "--bind-to", "none")}


@pytest.mark.parametrize("mpi", LAUNCHES)
@pytest.mark.parametrize("armci", ["ours", "its own"])
def test_global_arrays(armci: str, mpi: str, tmp_path: Path) -> None:
    compiler, launcher = shutil.which(f"mpicc.{mpi}"), shutil.which(f"mpiexec.{mpi}")
    if compiler is None or launcher is None:
        pytest.skip(f"Debian's {mpi} is not installed")
    libraries = OURS if armci == "ours" else (f"-larmci-{mpi}",)
    program = tmp_path / "ga"
    words = (
        compiler, "-O1", ROOT / "apps/ga/ga.c", f"-lga-{mpi}", *libraries, f"-lscalapack-{mpi}",
        "-llapack", "-lblas", "-lgfortran", "-lm", "-o", program,
    )  # fmt: skip
    built = run_any(*words)
    if "cannot find -l" in built.stderr:
        pytest.skip(f"not installed: {built.stderr.splitlines()[-2]}")
    assert built.returncode == 0, built.stderr
    start = (*BEFORE, launcher, "-n", 2, *LAUNCHES[mpi], program, "--size", 200, "--json")
    for options in ((), ("--patches",)):
        result = result_of(run(*start, *options))
        assert result["right"]
        assert result["processes"] == 2
    for wrong in (("--size", "x"), ("--size", "200x"), ("--repeat", "0"), ("200",)):
        done = run_any(program, *wrong)
        assert done.returncode == 2
        assert f"ga: {' '.join(wrong)}: " in done.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""A program of Global Arrays (apps/ga), linked with Debian's library and one ARMCI or another."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from mobius_instrument.libraries.base import Context, Start, application_command
from mobius_instrument.libraries.building import COMPILE_FLAGS
from mobius_instrument.libraries.mpi import MpiPlace, launch_rules, launcher_for

NAME: Final = "global-arrays"
_FIND_LIMIT_S: Final = 20
FAMILIES: Final = ("mpich", "openmpi")


def place_of(family: str) -> MpiPlace | None:
    """Debian's MPI of a family."""
    compiler = shutil.which(f"mpicc.{family}")
    if compiler is None:
        return None
    path = Path(compiler)
    return MpiPlace(f"ga-{family}", path, launcher_for(path), "Debian", {})


def settings_for(family: str, version: str) -> tuple[str, ...]:
    """Words before the launcher with which ARMCI-MPI gives right results to Global Arrays. MPICH
    4.0 reads wrong places of windows that MPI_Win_allocate() makes."""
    wrong = family == "mpich" and version.startswith("4.0")
    return ("env", "ARMCI_USE_WIN_ALLOCATE=0") if wrong else ()


def application(
    place: MpiPlace,
    family: str,
    armci: Sequence[str],
    context: Context,
    before: tuple[str, ...] = (),
) -> dict[str, Callable[[Start], tuple[str, ...]]]:
    """The program by its name, if Global Arrays is here for this MPI; `armci` has the flags that
    link ARMCI, `before` the words before the launcher."""
    folder, launcher = context.locations.app_sources, place.launcher
    libraries = (f"ga-{family}", f"scalapack-{family}", "lapack", "blas")
    if folder is None or launcher is None or not (folder / "ga" / "ga.c").is_file():
        return {}
    if not all(_is_here(place.mpicc, library) for library in libraries):
        return {}
    source = folder / "ga" / "ga.c"
    flags = (libraries[0], None, *libraries[1:], "gfortran", "m")
    links = [word for name in flags for word in (armci if name is None else [f"-l{name}"])]
    build = (str(place.mpicc), *COMPILE_FLAGS, str(source), *links)
    key = hashlib.sha256("\0".join(build).encode() + source.read_bytes())
    # A static ARMCI is a part of the program.
    for word in armci:
        if word.endswith(".a"):
            key.update(Path(word).read_bytes())
    program = context.locations.cache / "applications" / key.hexdigest()[:16] / "ga"

    def start(how: Start) -> tuple[str, ...]:
        words, _ = launch_rules(family, launcher, context.cpus, how)
        return application_command((*before, *words, str(program)), build)

    return {NAME: start}


def on_mobius(mobius: Path, context: Context) -> dict[str, Callable[[Start], tuple[str, ...]]]:
    """With our ARMCI, over the first MPI of Debian's that has Global Arrays."""
    folder = mobius.resolve().parents[1] / "lib"
    armci = (f"-L{folder}", "-larmci", "-lmobius", f"-Wl,-rpath,{folder}")
    for family in FAMILIES:
        place = place_of(family)
        if place is not None and (found := application(place, family, armci, context)):
            return found
    return {}


def _is_here(compiler: Path, library: str) -> bool:
    """Whether the compiler finds a library."""
    for ending in ("so", "a"):
        try:
            said = subprocess.run(
                [str(compiler), f"-print-file-name=lib{library}.{ending}"],
                capture_output=True, text=True, check=False, timeout=_FIND_LIMIT_S,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return False
        if "/" in said.stdout:
            return True
    return False

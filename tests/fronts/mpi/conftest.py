# SPDX-License-Identifier: BSD-3-Clause
"""Each test runs once with every MPI of this machine, and skips where one is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mpi_tools import MPIS, Mpi, command


@pytest.fixture(scope="session", autouse=True)
def _plain_build() -> None:
    done = subprocess.run([command(), "info", "--json"], capture_output=True, check=False)
    if json.loads(done.stdout)["build"]["sanitizers"]:
        pytest.skip("a sanitized library cannot be preloaded")


@pytest.fixture(scope="session", params=list(MPIS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """An MPI with its front."""
    found = MPIS[request.param]
    if found.missing:
        pytest.skip(found.missing)
    return found


@pytest.fixture(scope="session")
def windows(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with windows of each kind, built as its author would."""
    return mpi.compile("windows.c", tmp_path_factory.mktemp(mpi.name) / "windows")

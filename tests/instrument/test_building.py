# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a program that could not be built."""

from __future__ import annotations

import pytest
from mobius_instrument.libraries.building import failure_of
from mobius_instrument.processes import Ended


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("mpi.h", "; its development files are missing: on Debian, install libopenmpi-dev or"),
        ("shmem.h", "; its development files are missing: on Debian, install libopenmpi-dev"),
        ("other.h", ""),
    ],
)
def test_a_compiler_without_its_headers(header: str, remedy: str) -> None:
    line = f"identify.c:1:10: fatal error: {header}: No such file or directory"
    said = failure_of("mpicc", Ended(1, f"{line}\ncompilation terminated.\n", 0.1), 1.0)
    assert said.startswith(f"mpicc failed (exit code 1): {line}{remedy}")
    assert bool(remedy) == ("install" in said)

# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the fronts on two hosts, started by Open MPI's mpirun."""

from __future__ import annotations

import bed as beds
import pytest
from hosts_tools import mpirun, program, run


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("lapi_tests", "Counters.*:Memory/*:PutGet.*:Rmw.*:Xfer.*"),
        ("armci_tests", "Groups.*:Memory.*:Mutexes.*:Strided.*:Transfer/*"),
    ],
)
def test_their_tests_between_hosts(bed: beds.Bed, name: str, tests: str) -> None:
    done = run(mpirun(bed, "hosta:2,hostb:1", program(name), f"--gtest_filter={tests}"))
    assert (done.code, done.err) == (0, "")
    assert "[  PASSED  ]" in done.out


def test_a_sample_of_lapi_between_hosts(bed: beds.Bed) -> None:
    done = run(mpirun(bed, "hosta,hostb", program("lapi_sample_producer")))
    assert (done.code, done.err) == (0, "")
    assert ": right" in done.out

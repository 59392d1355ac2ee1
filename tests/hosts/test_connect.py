# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on different hosts, and on several, that connect with each other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bed as beds
import pytest
from hosts_tools import Ended, launcher, program, run

CONNECT = program("connect_tests")
MOBIUS = program("mobius")


def connect(
    bed: beds.Bed,
    port: Path,
    accepts: tuple[str, Sequence[str]],
    connects: tuple[str, Sequence[str]],
    *steps: str,
) -> list[Ended]:
    """Run two jobs, each on a host and with its options of `mobius run`."""
    env = {"OMPI_MCA_plm_rsh_agent": str(bed.agent)}

    def job(role: str, host: str, options: Sequence[str]) -> Ended:
        words = [MOBIUS, "run", *options, CONNECT, role, str(port), *steps]
        return run(bed.words(words, host), env)

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(job, "accept", *accepts), pool.submit(job, "connect", *connects)]
    return [each.result() for each in jobs]


@pytest.fixture
def port(tmp_path: Path) -> Path:
    """Return where the text of a port is passed on."""
    return tmp_path / "port"


def test_a_job_on_each_of_two_hosts(bed: beds.Bed, port: Path) -> None:
    one = ["-n", "2"]
    done = connect(bed, port, ("hosta", one), ("hostb", one), "numbers", "operations", "stay")
    assert [each.code for each in done] == [0, 0], done
    assert "@" in port.read_text()


def test_two_jobs_on_the_same_two_hosts(bed: beds.Bed, port: Path) -> None:
    launcher("mpirun.openmpi")
    both = ["--hosts", "hosta:1,hostb:1"]
    done = connect(bed, port, ("hosta", both), ("hosta", both), "operations", "numbers")
    assert [each.code for each in done] == [0, 0], done


def test_a_job_on_one_host_and_one_on_two(bed: beds.Bed, port: Path) -> None:
    launcher("mpirun.openmpi")
    both = ["--hosts", "hosta:1,hostb:1"]
    done = connect(bed, port, ("hostb", ["-n", "1"]), ("hosta", both), "operations", "stay")
    assert [each.code for each in done] == [0, 0], done

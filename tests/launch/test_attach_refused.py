# SPDX-License-Identifier: BSD-3-Clause
"""Where the kernel refuses cross-memory attach, as in some containers, all works without."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from launch_tools import HANG_SECONDS, command, refuse_calls

SUITE = Path(command()).parent / "multi_tests"
# Those of moved memory by themselves, too: who was refused once does not try again.
CASES = ["Remap*:Lock*", "Exposed.*:Transfer*:Message*:Collective*:Remap*"]
# process_vm_readv and process_vm_writev.
CALLS = {"x86_64": (310, 311), "aarch64": (270, 271)}


@pytest.fixture(autouse=True)
def _needs_filters() -> None:
    if platform.machine() not in CALLS:
        pytest.skip(f"the calls' numbers on {platform.machine()} are not known here")
    if not SUITE.exists():
        pytest.skip("the tests in C++ are not built")


@pytest.mark.parametrize("cases", CASES)
def test_all_works_without_cross_memory_attach(cases: str) -> None:
    done = subprocess.run(
        [command(), "run", "-n", "2", str(SUITE), f"--gtest_filter={cases}"],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        preexec_fn=lambda: refuse_calls(*CALLS[platform.machine()]),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout


def test_it_is_told() -> None:
    done = subprocess.run(
        [command(), "info"],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: refuse_calls(*CALLS[platform.machine()]),
    )
    told = " ".join(done.stdout.split())
    assert "memory attach does not work" in told
    assert "a thread of the target, which has to be woken, copies instead" in told

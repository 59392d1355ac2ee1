# SPDX-License-Identifier: BSD-3-Clause
"""Processes of one host that are counted anew: what the others know is not their number."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launch_tools import HANG_SECONDS, command

SUITE = Path(command()).parent / "multi_tests"
ANEW = ["unshare", "--pid", "--fork", "--mount-proc"]
CASES = "Exposed.*:Transfer*:Message*:Collective*:Remap*"


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if subprocess.run([*ANEW, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("processes may not be counted anew here")
    if not SUITE.exists():
        pytest.skip("the tests in C++ are not built")


# All of them: then two have one number each. One of three: the others know each other's.
@pytest.mark.parametrize(("ranks", "size"), [("1", 2), ("[0-9]", 2), ("1", 3)])
def test_nobody_else_is_taken_for_a_rank(ranks: str, size: int) -> None:
    anew = f'case $MOBIUS_RANK in {ranks}) exec {" ".join(ANEW)} "$@";; *) exec "$@";; esac'
    words = [command(), "run", "-n", str(size), "sh", "-c", anew, "sh"]
    words += [str(SUITE), f"--gtest_filter={CASES}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout

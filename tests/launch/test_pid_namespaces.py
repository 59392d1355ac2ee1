# SPDX-License-Identifier: BSD-3-Clause
"""Processes of one host that are counted anew: what the others know is not their number."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launch_tools import HANG_SECONDS, Launcher, command, wait_until

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


# As a container's init that forgot to mount /proc: it numbers processes as the host does.
ELSEWHERE = ["unshare", "--pid", "--fork"]


def test_ranks_where_proc_is_another_namespaces_are_not_taken_for_dead() -> None:
    words = [*ELSEWHERE, command(), "run", "-n", "2", str(SUITE)]
    words += ["--gtest_filter=Exposed.*:Transfer*:Message*:Collective*"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout


def test_descendants_are_ended_where_proc_is_another_namespaces(launcher: Launcher) -> None:
    """Those of the job, and no other process that has such a number somewhere."""
    script = "(setsid sleep 1000 &); echo > $D/runs.$MOBIUS_RANK; exit 3"
    # The shell stays, because the kernel ends all processes of a namespace with its first one.
    inner = f"'{command()}' run -n 2 sh -c '{script}'; echo ended with $?; read wait"
    process = subprocess.Popen(
        [*ELSEWHERE, "sh", "-c", inner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=launcher.environment(),
    )
    launcher.started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ended with 3\n"
    wait_until(lambda: not launcher.named("sleep"), "the descendants end")
    _, err = process.communicate(b"go on\n", timeout=HANG_SECONDS)
    assert b"could not be ended" not in err

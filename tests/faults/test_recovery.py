# SPDX-License-Identifier: BSD-3-Clause
"""examples/recovery.c while its processes are killed at random moments: its result stays right.

FAULT_SEED changes the moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from launch_tools import Launcher, children_of, command, name_of, wait_until

SEED = int(os.environ.get("FAULT_SEED", "1"))
PARTS = 4
STEPS = 1500
MOST_MOMENT_S = 0.03  # after all parts have a process
MOST_SECOND_S = 0.25  # after a first one was killed: until after its replacement has joined
KILLS_OF_A_JOB = 10


def program() -> str:
    return str(Path(command()).parent / "example_recovery")


def kill_one(worker: int, choice: random.Random) -> bool:
    """Kill a process of the job, but none of the last two."""
    ranks = [pid for pid in children_of(worker) if name_of(pid) == Path(program()).name[:15]]
    if len(ranks) <= 2:
        return False
    os.kill(choice.choice(ranks), signal.SIGKILL)
    return True


def wait_until_whole(path: Path, process: subprocess.Popen[bytes], before: int) -> int:
    """Wait until all parts have a process once more, or the job has ended: how often they had."""

    def times() -> int:
        return path.read_bytes().count(b"processes")

    wait_until(lambda: times() > before or process.poll() is not None, "all parts have a process")
    return times()


def run_with_kills(launcher: Launcher, most: int, choice: random.Random) -> int:
    """Run the example, kill up to `most` processes, and return how many were."""
    path = launcher.folder / "out"
    killed = 0
    with path.open("wb") as out:
        process = launcher.start(
            *("-n", str(PARTS), "--on-death", "error"), program(), str(STEPS), stdout=out
        )
        worker = launcher.worker(process)
        whole = 0  # how often all parts had a process
        while killed < most:
            whole = wait_until_whole(path, process, whole)
            if process.poll() is not None:
                break
            time.sleep(choice.uniform(0, MOST_MOMENT_S))
            if not kill_one(worker, choice):
                continue
            killed += 1
            if killed < most and choice.random() < 0.4:
                time.sleep(choice.uniform(0, MOST_SECOND_S))
                killed += kill_one(worker, choice)
        code, _, err = launcher.finish(process)
    text = path.read_text()
    assert text.count(f"recovery: {PARTS} parts, {STEPS} steps: right\n") == 1, (text, err)
    assert code == (128 + signal.SIGKILL if killed else 0), (code, err)
    assert launcher.marked() == []
    return killed


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.full)])
def test_the_result_is_right_whoever_dies(launcher: Launcher, kills: int) -> None:
    choice = random.Random(SEED)
    killed = 0
    while killed < kills:
        killed += run_with_kills(launcher, min(KILLS_OF_A_JOB, kills - killed), choice)

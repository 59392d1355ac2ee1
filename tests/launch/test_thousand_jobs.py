# SPDX-License-Identifier: BSD-3-Clause
"""Many jobs start, communicate and end; the machine is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch_tools import Launcher, command, wait_until


def sockets() -> set[str]:
    """Names of the sockets that launchers listen on."""
    words = (line.split() for line in Path("/proc/net/unix").read_text().splitlines())
    return {line[-1] for line in words if line[-1].startswith("@mobius-")}


def shared_files() -> set[str]:
    """Files in shared memory, where other libraries leave theirs."""
    return {path.name for path in Path("/dev/shm").iterdir()}


@pytest.mark.parametrize("jobs", [200, pytest.param(1000, marks=pytest.mark.full)])
def test_nothing_is_left(launcher: Launcher, jobs: int) -> None:
    program = Path(command()).parent / "example_ring"
    if not program.exists():
        pytest.skip(f"{program} is not built: MOBIUS_TESTS is off")
    files = shared_files()
    before = sockets()
    loop = f'i=0; while [ $i -lt {jobs} ]; do "$0" run -n 2 "$1" || exit 1; i=$((i + 1)); done'
    # The loop itself runs as a job, so that its processes are known; each round is a job in it.
    done = launcher.run("-n", "1", "sh", "-c", loop, command(), str(program))
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()[-4000:]
    assert done.stderr == b""
    assert done.stdout.count(b"got") == 2 * jobs
    assert launcher.marked() == []
    # Jobs of others may come meanwhile, and go.
    new = sockets() - before
    wait_until(lambda: not new & sockets(), "no socket is left")
    assert {name for name in shared_files() - files if "mobius" in name} == set()

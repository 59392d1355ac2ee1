# SPDX-License-Identifier: BSD-3-Clause
"""Processes that ranks spawn are processes of the job: signals reach them, none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from launch_tools import Launcher, command, python, wait_until

LIBRARY = Path(command()).parents[1] / "lib" / "libmobius.so"

# Rank 0 spawns two processes of the same program. All write their process ids and sleep.
PROGRAM = python(
    "import ctypes, os, sys, time",
    f"mob = ctypes.CDLL({str(LIBRARY)!r})",
    "mob.mob_parent.restype = ctypes.c_void_p",
    "assert mob.mob_init() == 0",
    "if not mob.mob_parent():",
    "    bridge = ctypes.c_void_p()",
    "    words = [b'-c', open('/proc/self/cmdline', 'rb').read().split(b'\\0')[2], None]",
    "    argv = (ctypes.c_char_p * 3)(*words)",
    "    program = sys.executable.encode()",
    "    world = ctypes.c_void_p(1)",
    "    assert mob.mob_spawn(world, program, argv, 2, None, ctypes.byref(bridge)) == 0",
    "folder, rank = os.environ['D'], os.environ.get('MOBIUS_RANK', '0')",
    "print('rank', rank, flush=True)",
    "with open(f'{folder}/new.{rank}', 'w') as file:",
    "    file.write(f'{os.getpid()}\\n')",
    "os.rename(f'{folder}/new.{rank}', f'{folder}/pid.{rank}')",
    "while True:",
    "    time.sleep(0.02)",
)


def start(launcher: Launcher) -> tuple[subprocess.Popen[bytes], list[int]]:
    process = launcher.start("-n", "1", "--tag", *PROGRAM)
    return process, launcher.ranks(3)


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_signals_end_spawned_processes(launcher: Launcher, name: str) -> None:
    process, _ = start(launcher)
    number = signal.Signals[f"SIG{name}"]
    process.send_signal(number)
    code, out, _ = launcher.finish(process)
    assert code == (128 + number if name == "TERM" else code)
    assert launcher.marked() == []
    for rank in range(3):
        assert f"rank {rank}".encode() in out


def test_nothing_is_left_of_a_killed_launcher(launcher: Launcher) -> None:
    process, _ = start(launcher)
    process.kill()
    process.wait()
    wait_until(lambda: launcher.marked() == [], "no process is left")


def test_nothing_is_left_of_a_killed_root(launcher: Launcher) -> None:
    process, pids = start(launcher)
    os.kill(pids[0], signal.SIGKILL)
    code, _, err = launcher.finish(process)
    assert code == 128 + signal.SIGKILL
    assert "rank 0" in err
    assert launcher.marked() == []


def test_without_a_launcher_nothing_is_left_of_a_killed_root(launcher: Launcher) -> None:
    root = subprocess.Popen(PROGRAM, env=launcher.environment(), stdout=subprocess.DEVNULL)
    pids = launcher.ranks(3)
    assert pids[0] == root.pid
    root.kill()
    root.wait()
    wait_until(lambda: launcher.marked() == [], "no process is left")


def test_a_killed_spawned_process_ends_the_job(launcher: Launcher) -> None:
    process, pids = start(launcher)
    os.kill(pids[2], signal.SIGKILL)
    code, _, err = launcher.finish(process)
    assert code == 128 + signal.SIGKILL
    assert "rank 2" in err
    assert launcher.marked() == []

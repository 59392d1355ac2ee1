# SPDX-License-Identifier: BSD-3-Clause
"""Whatever is killed, nothing that the job started stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from launch_tools import Launcher, command, python, wait_until

# Each rank: a child, a child in a session of its own, a daemon, and a daemon that refuses to end.
FAMILY = (
    "sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &); "
    "(setsid sh -c \"trap '' TERM HUP INT; sleep 1004\" &); "
    'echo $$ > "$D/new.$MOBIUS_RANK"; mv "$D/new.$MOBIUS_RANK" "$D/pid.$MOBIUS_RANK"; '
)


def start_family(
    launcher: Launcher, ranks: int, last: str
) -> tuple[subprocess.Popen[bytes], list[int]]:
    process = launcher.start("-n", str(ranks), "sh", "-c", FAMILY + last)
    pids = launcher.ranks(ranks)
    wait_until(lambda: len(launcher.named("sleep")) >= 4 * ranks, "all descendants run")
    return process, pids


def all_gone(launcher: Launcher) -> None:
    wait_until(lambda: launcher.marked() == [], "no process is left")


@pytest.mark.parametrize("ranks", [1, 3])
def test_front_killed(launcher: Launcher, ranks: int) -> None:
    process, _ = start_family(launcher, ranks, "exec sleep 1000")
    process.kill()
    assert process.wait() == -signal.SIGKILL
    all_gone(launcher)


@pytest.mark.parametrize("ranks", [1, 3])
def test_worker_killed(launcher: Launcher, ranks: int) -> None:
    process, _ = start_family(launcher, ranks, "exec sleep 1000")
    worker = launcher.worker(process)
    os.kill(worker, signal.SIGKILL)
    code, _, err = launcher.finish(process)
    assert launcher.marked() == []
    assert code == 137
    assert re.fullmatch(
        rf"mobius run: the launcher's worker \(process {worker}\) was killed by signal 9 "
        r"\(Killed\); all ranks were ended\n",
        err,
    )


def test_both_killed_ends_the_ranks(launcher: Launcher) -> None:
    process = launcher.start("-n", "3", "sleep", "1000")
    wait_until(lambda: len(launcher.named("sleep")) == 3, "the ranks run")
    worker = launcher.worker(process)
    os.kill(process.pid, signal.SIGSTOP)  # so that it cannot see the worker end
    os.kill(worker, signal.SIGKILL)
    process.kill()
    process.wait()
    all_gone(launcher)


# A rank that has joined through the library itself.
LIBRARY = Path(command()).parents[1] / "lib" / "libmobius.so"
JOINED = python(
    "import ctypes, os, time",
    f"library = ctypes.CDLL({str(LIBRARY)!r})",
    "assert library.mob_init() == 0",
    "path = os.environ['D'] + '/pid.' + os.environ['MOBIUS_RANK']",
    "open(path + '.new', 'w').write(f'{os.getpid()}\\n')",
    "os.rename(path + '.new', path)",
    "time.sleep(1000)",
)


@pytest.mark.skipif(not LIBRARY.exists(), reason="the library is not built")
@pytest.mark.parametrize("wrapper", ['"$@"; true', 'sh -c \'"$@"; true\' sh "$@"; true'])
def test_both_killed_ends_ranks_behind_wrappers(launcher: Launcher, wrapper: str) -> None:
    """The library has the kernel watch the connection to the launcher."""
    process = launcher.start("-n", "2", "sh", "-c", wrapper, "sh", *JOINED)
    ranks = launcher.ranks(2)
    worker = launcher.worker(process)
    os.kill(process.pid, signal.SIGSTOP)  # so that it cannot see the worker end
    os.kill(worker, signal.SIGKILL)
    process.kill()
    process.wait()
    wait_until(lambda: not set(ranks) & set(launcher.marked()), "the ranks have ended")
    for pid in launcher.marked():  # the inner shells that the library knows nothing of
        os.kill(pid, signal.SIGKILL)


def test_rank_killed(launcher: Launcher) -> None:
    process, pids = start_family(launcher, 3, "exec sleep 1000")
    os.kill(pids[1], signal.SIGKILL)
    code, _, err = launcher.finish(process)
    assert launcher.marked() == [], "the launcher ended before the job did"
    assert code == 137
    assert err.count("\n") == 1


def test_normal_end(launcher: Launcher) -> None:
    process, _ = start_family(launcher, 2, 'while ! [ -e "$D/go" ]; do sleep 0.01; done')
    (launcher.folder / "go").touch()
    assert launcher.finish(process) == (0, b"", "")
    assert launcher.marked() == [], "the launcher ended before the job did"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signalled(launcher: Launcher, number: signal.Signals) -> None:
    process, _ = start_family(launcher, 2, "exec sleep 1000")
    process.send_signal(number)
    code, _, _ = launcher.finish(process)
    assert launcher.marked() == []
    assert code == 128 + number


def test_front_killed_while_ranks_are_started(launcher: Launcher) -> None:
    process = launcher.start("-n", "500", "sleep", "1000")
    wait_until(lambda: len(launcher.named("sleep")) > 10, "some ranks run")
    process.kill()
    process.wait()
    all_gone(launcher)


def test_front_killed_while_the_reader_is_slow(launcher: Launcher) -> None:
    process = launcher.start("-n", "2", "yes")
    assert process.stdout is not None
    os.read(process.stdout.fileno(), 1)
    process.kill()
    process.wait()
    all_gone(launcher)


def test_chain_of_descendants(launcher: Launcher) -> None:
    # A program that starts the next of its kind and ends, over and over, in new sessions.
    chain = launcher.folder / "chain"
    chain.write_text('#!/bin/sh\nsetsid "$0" > /dev/null 2>&1 &\n')
    chain.chmod(0o755)
    process = launcher.start("-n", "1", "sh", "-c", f"{chain}; echo started; exec sleep 1000")
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 100) == b"started\n"
    process.send_signal(signal.SIGTERM)
    assert launcher.finish(process)[0] == 143
    assert launcher.marked() == []


def test_job_inside_a_job(launcher: Launcher) -> None:
    inner = 'exec "$0" run -n 2 sh -c "exec sleep 1000"'
    process = launcher.start("-n", "2", "sh", "-c", inner, command())
    wait_until(lambda: len(launcher.named("sleep")) == 4, "the ranks of the inner jobs run")
    process.kill()
    process.wait()
    all_gone(launcher)

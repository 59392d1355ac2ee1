# SPDX-License-Identifier: BSD-3-Clause
"""How jobs end: exit codes, the one line about the first failure, the fate of the others."""

from __future__ import annotations

import os
import re
import signal

import pytest
from launch_tools import Launcher, state_of, wait_until

WAIT = 'echo $$ > "$D/pid.$MOBIUS_RANK.new"; mv "$D/pid.$MOBIUS_RANK.new" "$D/pid.$MOBIUS_RANK"; '


def one_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_success(launcher: Launcher) -> None:
    done = launcher.run("-n", "16", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("code", [1, 2, 77, 126, 127, 130, 255])
def test_exit_code_of_the_rank_that_failed(launcher: Launcher, code: int) -> None:
    script = f"[ $MOBIUS_RANK != 1 ] || exit {code}; exec sleep 1000"
    done = launcher.run("-n", "3", "sh", "-c", script)
    assert done.returncode == code
    line = one_line(done.stderr.decode())
    pattern = rf"mobius run: rank 1 \(process \d+, sh\) exited with code {code}; the (other|\d) .*"
    assert re.fullmatch(pattern, line), line


def test_failure_of_a_single_rank(launcher: Launcher) -> None:
    done = launcher.run("sh", "-c", "exit 9")
    assert done.returncode == 9
    line = one_line(done.stderr.decode())
    assert re.fullmatch(r"mobius run: rank 0 \(process \d+, sh\) exited with code 9", line)


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM", "USR1", "PIPE"])
def test_rank_killed_by_a_signal(launcher: Launcher, name: str) -> None:
    process = launcher.start("-n", "4", "sh", "-c", WAIT + "exec sleep 1000")
    pids = launcher.ranks(4)
    number = signal.Signals[f"SIG{name}"]
    os.kill(pids[2], number)
    code, _, err = launcher.finish(process)
    assert code == 128 + number
    text = re.escape(f"was killed by signal {number.value} (")
    line = one_line(err)
    pattern = rf"mobius run: rank 2 \(process {pids[2]}, sh\) {text}[A-Z].*"
    assert re.fullmatch(pattern, line), line
    assert line.endswith("; the other 3 ranks were ended")


def test_only_the_first_failure_is_told(launcher: Launcher) -> None:
    done = launcher.run("-n", "20", "sh", "-c", "exit $((MOBIUS_RANK + 10))")
    line = one_line(done.stderr.decode())
    match = re.search(r"rank (\d+) .* exited with code (\d+)", line)
    assert match
    assert done.returncode == int(match[2]) == int(match[1]) + 10


def test_others_may_say_goodbye(launcher: Launcher) -> None:
    script = (
        "if [ $MOBIUS_RANK = 0 ]; then while ! [ -e $D/pid.1 ]; do :; done; exit 3; fi; "
        "trap 'echo saved; exit 0' TERM; " + WAIT + "while :; do sleep 0.01; done"
    )
    done = launcher.run("-n", "2", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (3, b"saved\n")


def test_others_that_refuse_to_end_are_killed(launcher: Launcher) -> None:
    script = "trap '' TERM INT HUP; " + WAIT + "while :; do sleep 0.01; done"
    process = launcher.start("-n", "3", "sh", "-c", script)
    os.kill(launcher.ranks(3)[0], signal.SIGKILL)
    assert launcher.finish(process)[0] == 137


def test_stopped_ranks_end_too(launcher: Launcher) -> None:
    process = launcher.start("-n", "3", "sh", "-c", WAIT + "exec sleep 1000")
    pids = launcher.ranks(3)
    os.kill(pids[1], signal.SIGSTOP)
    wait_until(lambda: state_of(pids[1]) == "T", "rank 1 is stopped")
    os.kill(pids[0], signal.SIGKILL)
    assert launcher.finish(process)[0] == 137


def test_ranks_that_ended_before_are_not_counted(launcher: Launcher) -> None:
    script = "[ $MOBIUS_RANK != 1 ] || exit 0; " + WAIT + "exec sleep 1000"
    process = launcher.start("-n", "4", "sh", "-c", script)
    pids = [int(launcher.file(f"pid.{rank}")) for rank in (0, 2, 3)]
    wait_until(lambda: len(launcher.marked()) == 5, "rank 1 has ended")  # two are the launcher's
    os.kill(pids[0], signal.SIGKILL)
    assert launcher.finish(process)[2].endswith("; the 2 ranks still running were ended\n")


def test_many_ranks(launcher: Launcher) -> None:
    done = launcher.run("-n", "64", "--tag", "sh", "-c", "echo rank $MOBIUS_RANK")
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[{rank}] rank {rank}".encode() for rank in range(64)
    )


def test_more_ranks_than_a_turn_of_anything(launcher: Launcher) -> None:
    done = launcher.run("-n", "300", "sh", "-c", "echo $MOBIUS_RANK")
    assert sorted(map(int, done.stdout.split())) == list(range(300))


def test_nothing_is_left_in_file_systems(launcher: Launcher) -> None:
    def entries() -> set[str]:
        return {
            f"{folder}/{name}"
            for folder in ("/dev/shm", "/tmp", "/var/tmp", "/run")
            for name in os.listdir(folder)  # noqa: PTH208 - names are enough
            if "mob" in name
        }

    before = entries()
    assert launcher.run("-n", "4", "true").returncode == 0
    process = launcher.start("-n", "4", "sh", "-c", WAIT + "exec sleep 1000")
    os.kill(launcher.ranks(4)[1], signal.SIGKILL)
    launcher.finish(process)
    assert entries() - before == set()


def test_zombies_of_descendants_are_reaped(launcher: Launcher) -> None:
    # Daemons that end while the job runs are the worker's to reap.
    script = "for i in 1 2 3 4 5; do (setsid true &); done; " + WAIT + "exec sleep 1000"
    process = launcher.start("-n", "2", "sh", "-c", script)
    ranks = set(launcher.ranks(2))
    worker = launcher.worker(process)

    def only_ranks() -> bool:
        path = f"/proc/{worker}/task/{worker}/children"
        with open(path, encoding="ascii") as children:  # noqa: PTH123 - a moment, not a file
            return {int(word) for word in children.read().split()} == ranks

    wait_until(only_ranks, "the worker has no children but the ranks")
    process.send_signal(signal.SIGTERM)
    assert launcher.finish(process)[0] == 143

# SPDX-License-Identifier: BSD-3-Clause
"""A job whose host, process or network between hosts fails.

faults.c is the program. There are two ranks on each of two hosts, and rank i works with rank (i
+ 2) % 4; the failures happen on hostb. No rank may hang, and none may get wrong data.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import bed as beds
import pytest
from hosts_tools import HANG_SECONDS, environment, mpirun, program, run

FAULTS = program("hosts_faults")
SILENCE_MS = "1500"
# No process listens there, which only hostb itself can report.
REACH = """
import errno, socket, sys
s = socket.socket()
s.settimeout(1)
sys.exit(s.connect_ex(("hostb", 9)) != errno.ECONNREFUSED)
"""


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that a test can check."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what}: it does not happen"
        time.sleep(0.01)


class Job:
    """A running job of faults.c."""

    def __init__(self, bed: beds.Bed, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.bed = bed
        self.folder = folder
        self.process = process

    def ranks(self) -> dict[int, int]:
        """The process id of each rank."""
        found = {}
        for pids in beds.processes_on(self.bed).values():
            for pid in pids:
                with suppress(OSError):
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    if words[0].decode() != FAULTS or str(self.folder).encode() not in words:
                        continue
                    variables = Path(f"/proc/{pid}/environ").read_bytes()
                    rank = re.search(rb"(?:^|\0)PMIX_RANK=(\d+)", variables)
                    if rank is not None:  # not a process that is ending
                        found[int(rank[1])] = pid
        return found

    def wait_for(self, name: str, ranks: Sequence[int]) -> None:
        """Wait for files of these ranks."""
        paths = [self.folder / f"{name}.{rank}" for rank in ranks]
        until(lambda: all(path.exists() for path in paths), f"{name} of ranks {ranks}")

    def outcome(self, rank: int) -> tuple[str, str]:
        """The name of the status that ended a rank's work, and the error's text."""
        status, text = (self.folder / f"rank.{rank}").read_text().rstrip("\n").split("\t", 1)
        return status, text

    def stop(self) -> None:
        """End the ranks that still work."""
        (self.folder / "stop").touch()

    def wait_for_the_end(self) -> tuple[int, str]:
        """The exit code of the launcher, and the text on standard error."""
        self.stop()
        _, err = self.process.communicate(timeout=HANG_SECONDS)
        return self.process.returncode, err.decode()


@contextmanager
def job(bed: beds.Bed, folder: Path, what: str, **env: str) -> Iterator[Job]:
    """Start a job, wait until it has begun its work, and ensure that it ends."""
    env = {"MOBIUS_PEER_TIMEOUT_MS": SILENCE_MS, "MOBIUS_ON_DEATH": "error", **env}
    options = [word for name in env for word in ("-x", name)]
    # Without --enable-recovery the launcher ends all ranks when one dies.
    options += ["--enable-recovery", "--bind-to", "none"]
    words = mpirun(bed, "hosta:2,hostb:2", *options, FAULTS, str(folder), what)
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(env),
        start_new_session=True,
    )
    try:
        one = Job(bed, folder, process)
        until(
            lambda: len(list(folder.glob("ready.?"))) == 4 or process.poll() is not None,
            "all have begun",
        )
        assert process.poll() is None
        yield one
    finally:
        bed.set_link("hostb", "up")
        until(lambda: run(bed.words([sys.executable, "-c", REACH])).code == 0, "hostb is reached")
        for name, pids in beds.processes_on(bed).items():
            del name
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def expect_lost(text: str, rank: str = r"\d+") -> None:
    """Expect an error that names the lost rank, its host and the provider."""
    where = r"provider \S+ (?:lost )?peer 10\.77\.0\.\d:\d+ on host[ab]: "
    # The process of a host that talked to the other host knows the reason, and tells the others the
    # rank.
    told = rf"rank {rank} is lost, as another member has found \({where[:-2]}\)"
    assert re.search(told, text) or re.search(rf"rank {rank}\b.* is lost: .*{where}", text), text


@pytest.mark.parametrize("what", ["small_put", "large_get", "barrier", "lock", "access_nbi"])
def test_a_cable_is_pulled(bed: beds.Bed, tmp_path: Path, what: str) -> None:
    with job(bed, tmp_path, what) as one:
        bed.set_link("hostb", "down")
        one.wait_for("rank", range(4))
        until(lambda: not one.ranks(), "all ranks end")
        for rank in range(4):
            status, text = one.outcome(rank)
            assert status == "MOB_ERR_PEER", text
            expect_lost(text)


@pytest.mark.parametrize("what", ["get", "allreduce"])
def test_a_process_is_stopped_and_goes_on_too_late(
    bed: beds.Bed, tmp_path: Path, what: str
) -> None:
    with job(bed, tmp_path, what) as one:
        victim = one.ranks()[2]
        os.kill(victim, signal.SIGSTOP)
        one.wait_for("rank", [0])
        status, text = one.outcome(0)
        assert status == "MOB_ERR_PEER", text
        expect_lost(text, "2")
        os.kill(victim, signal.SIGCONT)
        one.stop()
        one.wait_for("rank", range(4))
        until(lambda: not one.ranks(), "all ranks end")
        assert all(one.outcome(rank)[0] != "WRONG" for rank in range(4))


def test_a_process_that_is_stopped_for_less_is_waited_for(bed: beds.Bed, tmp_path: Path) -> None:
    with job(bed, tmp_path, "get", MOBIUS_PEER_TIMEOUT_MS="60000") as one:
        victim = one.ranks()[2]
        os.kill(victim, signal.SIGSTOP)
        time.sleep(1)
        assert not (tmp_path / "rank.0").exists()
        os.kill(victim, signal.SIGCONT)
        assert one.wait_for_the_end() == (0, "")
        assert [one.outcome(rank) for rank in range(4)] == [("MOB_OK", "")] * 4


@pytest.mark.parametrize("what", ["put", "messages", "put_beside_messages", "access_nbi"])
def test_a_process_is_killed(bed: beds.Bed, tmp_path: Path, what: str) -> None:
    with job(bed, tmp_path, what) as one:
        os.kill(one.ranks()[2], signal.SIGKILL)
        one.wait_for("rank", [0])
        status, text = one.outcome(0)
        assert status == "MOB_ERR_PEER", text
        assert "rank 2" in text
        one.stop()
        until(lambda: not one.ranks(), "all ranks end")
        assert one.outcome(1)[0] in ("MOB_OK", "MOB_ERR_PEER")


def memory_kib(pid: int, what: str) -> int:
    match = re.search(rf"^{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert match
    return int(match[1])


def test_a_full_socket_bounds_memory_and_loses_nothing(bed: beds.Bed, tmp_path: Path) -> None:
    with job(bed, tmp_path, "flood", MOBIUS_PEER_TIMEOUT_MS="60000") as one:
        ranks = one.ranks()
        before = memory_kib(ranks[0], "VmRSS")
        os.kill(ranks[2], signal.SIGSTOP)
        # Until its sender has stopped.
        seen = [-1, before]
        while seen[-1] != seen[-2]:
            time.sleep(0.5)
            seen.append(memory_kib(ranks[0], "VmRSS"))
        assert seen[-1] - before < 64 << 10
        assert not (tmp_path / "rank.0").exists()
        os.kill(ranks[2], signal.SIGCONT)
        assert one.wait_for_the_end() == (0, "")
        assert [one.outcome(rank) for rank in range(4)] == [("MOB_OK", "")] * 4


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MOBIUS_PROVIDER", "verbs"),
        ("MOBIUS_INTERFACE", "eth77"),
    ],
)
def test_a_provider_or_interface_that_is_not_there(
    bed: beds.Bed, tmp_path: Path, setting: str, value: str
) -> None:
    env = {setting: value}
    done = run(mpirun(bed, "hosta,hostb", "-x", setting, FAULTS, str(tmp_path), "get"), env)
    assert done.code != 0
    assert "rank " in done.err
    assert value in done.err
    assert re.search(r"on host host[ab]: ", done.err), done.err


def test_hosts_that_use_different_providers(bed: beds.Bed, tmp_path: Path) -> None:
    script = 'p=net; [ "$PMIX_RANK" = 0 ] || p="tcp;ofi_rxm"; MOBIUS_PROVIDER=$p exec "$@"'
    words = ["sh", "-c", script, "sh", FAULTS, str(tmp_path), "get"]
    done = run(mpirun(bed, "hosta,hostb", *words), {})
    assert done.code != 0
    assert re.search(r"this host uses provider \S+, a peer uses \S+: set MOBIUS_PROVIDER", done.err)

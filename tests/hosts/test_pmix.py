# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that a PMIx launcher starts on one host."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import bed as beds
import pytest
from hosts_tools import HANG_SECONDS, Ended, environment, mpirun, program, run

DRIVER = program("hosts_driver")
OPEN_MPI = "libmpi.so.40"


def job(size: int, *words: str, options: Sequence[str] = (), **env: str) -> Ended:
    """Run the driver as a job under mpirun."""
    export = [word for name in env for word in ("-x", name)]
    return run([*mpirun(None, f"-n {size}", *options, *export, DRIVER), *words], env)


def everybody(size: int) -> list[str]:
    return sorted(f"rank {rank} of {size}, {rank} of {size} here" for rank in range(size))


@pytest.mark.parametrize("size", [1, 2, 4, 16])
def test_all_join_one_job(size: int) -> None:
    done = job(size, "who")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == everybody(size)


def test_none_makes_jobs_of_one() -> None:
    done = job(3, "who", MOBIUS_LAUNCHER="none")
    assert (done.code, done.err) == (0, "")
    assert done.lines() == ["rank 0 of 1, 0 of 1 here"] * 3


def test_our_launcher_counts_before_theirs() -> None:
    done = run([*mpirun(None, "-n 2"), program("mobius"), "run", "-n", "3", DRIVER, "who"])
    assert (done.code, done.err) == (0, "")
    assert done.lines() == sorted(everybody(3) * 2)


# M and m: MPI and Möbius start at first, end at second.
@pytest.mark.parametrize("order", ["MmmM", "mMMm", "MmMm", "mMmM", "mmMM", "MMmm"])
def test_mpi_in_the_same_process(order: str) -> None:
    done = job(2, "beside_mpi", OPEN_MPI, order)
    if done.out.startswith("SKIP"):
        pytest.skip(done.out)
    assert done.code == 0, done.err
    assert done.lines() == ["left"] * 2 + everybody(2)


# Servers count processes that finalise PMIx as absent from a fence in which a faster one waits.
def test_an_mpi_that_one_process_after_the_other_has_left() -> None:
    done = job(4, "beside_mpi", OPEN_MPI, "MsMmm")
    if done.out.startswith("SKIP"):
        pytest.skip(done.out)
    assert done.code == 0, done.err
    assert done.lines() == ["left"] * 4 + everybody(4)


def test_exit_codes_pass_through() -> None:
    assert job(2, "exit", "9").code == 9


def test_abort_ends_the_job() -> None:
    done = job(3, "abort", "7")
    assert done.code == 7
    assert "mob_abort(7): because the test wants it" in done.err


def test_an_absent_process_is_waited_for_within_limits() -> None:
    done = job(2, "stay_away", MOBIUS_JOIN_SECONDS="1")
    assert done.code != 0
    assert "not all processes of the job have called it within 1 seconds" in done.err


def test_a_death_before_joining_ends_the_job() -> None:
    done = job(3, "die")
    assert done.code == 128 + signal.SIGKILL
    assert "here" not in done.out


def test_death_is_noticed_where_the_launcher_goes_on() -> None:
    done = job(3, "die", options=["--enable-recovery"], MOBIUS_JOIN_SECONDS="3")
    # The launcher's exit code is not that of the ranks then.
    assert "mob_init failed" in done.err
    assert "here" not in done.out


def test_a_process_without_its_launcher_ends() -> None:
    words = mpirun(None, "-n 2", DRIVER, "wait")
    # Its ranks keep the pipe open, so it ends when they do.
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        joined = sorted(process.stdout.readline().decode().strip() for _ in range(2))
        assert joined == everybody(2)
        ranks = children_of(process.pid)
        assert len(ranks) == 2
        watches = [os.pidfd_open(rank) for rank in ranks]
        process.kill()
        process.wait()
        for watch in watches:
            with os.fdopen(watch):
                assert wait_readable(watch)


def children_of(parent: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        found += [int(word) for word in (task / "children").read_text().split()]
    return found


def wait_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(HANG_SECONDS * 1000))


def test_a_server_that_is_not_there() -> None:
    leftover = {
        "PMIX_NAMESPACE": "12345",
        "PMIX_RANK": "0",
        "PMIX_SERVER_URI2": "12344.0;tcp4://127.0.0.1:9",
        "PMIX_SERVER_URI41": "12344.0;tcp4://127.0.0.1:9",
    }
    done = run([DRIVER, "who"], leftover)
    assert done.code == 3
    assert "the PMIx server that started this process cannot be reached" in done.err
    assert "MOBIUS_LAUNCHER=none" in done.err
    alone = run([DRIVER, "who"], {**leftover, "MOBIUS_LAUNCHER": "none"})
    assert (alone.code, alone.out) == (0, "rank 0 of 1, 0 of 1 here\n")


def without_library(*words: str) -> list[str]:
    """The words for a command that finds no libpmix."""
    listed = subprocess.run(
        ["sh", "-c", "ldconfig -p | sed -n 's/.*libpmix.so.2 .*=> //p'"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert listed
    hide = " && ".join(f"mount --bind /dev/null {path}" for path in listed)
    return ["unshare", "--mount", "sh", "-c", f'{hide} && exec "$@"', "sh", *words]


def test_one_host_can_do_without_the_library(bed: beds.Bed) -> None:
    del bed  # used only to know that namespaces are permitted
    done = run([*mpirun(None, "-n 2"), *without_library(DRIVER, "who")])
    assert (done.code, done.err) == (0, "")
    assert done.lines() == everybody(2)


def test_two_hosts_cannot(bed: beds.Bed) -> None:
    done = run(mpirun(bed, "hosta,hostb", *without_library(DRIVER, "who")))
    assert done.code == 3
    assert "its library cannot be used" in done.err
    assert "libpmix2" in done.err

# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that die, stop, or request too much: the errors that the others get, and the resources
left.

driver.cpp is the program. A seed chooses which rank dies and when; FAULT_SEED changes all seeds.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_tools import Launcher, command, state_of, variables_of, wait_until

SEED = int(os.environ.get("FAULT_SEED", "1"))
# Scenarios whose blocks may be read in place.
COLLECTIVE = [
    "allreduce",
    "broadcast",
    "gather",
    "scatter",
    "alltoall",
    "alltoallv",
    "reduce",
    "scan",
]
KILLED = [
    "contiguous",
    "strided",
    "accumulate",
    "accumulate_words",
    "fetch_add",
    "barrier",
    "allocation",
    "local_allocation",
    "split",
    "shrink",
    "counters",
    "mutex",
    "access",
    "messages",
    "epochs",
    "fence",
    "finalize",
    "exposed",
    "tested",
    "heap",
    "notify",
    "wait_until",
    "asked_target",
    "asking_origin",
    "pieces",
    "spans",
    "signals",
    "moved",
    "accumulate_pieces",
    "swaps",
    "exposing",
    "objects",
    "word_lock",
    "large_messages",
    *COLLECTIVE,
]
# Scenarios in which a waiting rank must be awake, however few processors there are.
SPINNING = ["asked_target", "asking_origin"]
# Scenarios of operations that exist between local peers only.
ON_ONE_HOST = [*SPINNING, "moved", "word_lock", "local_allocation", "shrink"]


def driver() -> str:
    return str(Path(command()).parent / "fault_driver")


def survivors(out: bytes) -> list[int]:
    return sorted(int(match) for match in re.findall(rb"^rank (\d+) survived$", out, re.MULTILINE))


def expect_others(done: subprocess.CompletedProcess[bytes], ranks: int, seed: int) -> None:
    victim = seed % ranks
    assert survivors(done.stdout) == [r for r in range(ranks) if r != victim], done


@pytest.mark.parametrize("round_", range(3))
@pytest.mark.parametrize("scenario", KILLED)
def test_others_go_on(launcher: Launcher, scenario: str, round_: int) -> None:
    ranks = (2, 4, 3)[round_]
    seed = SEED * 1000 + KILLED.index(scenario) * 10 + round_
    print(f"seed {seed}")
    words = ["-n", str(ranks), "--on-death", "error", driver(), scenario, str(seed)]
    mode = "table" if round_ == 1 else "same"
    env = {"MOBIUS_ADDRESS_MODE": mode}
    if scenario in COLLECTIVE and round_ != 0:  # in each other's memory, whatever is faster
        env["MOBIUS_COLLECTIVES"] = "attach"
    if scenario in SPINNING:
        env["MOBIUS_SPIN_NS"] = "1000000"
    done = launcher.run(*words, env=env)
    victim = seed % ranks
    assert re.fullmatch(
        rf"mobius run: rank {victim} \(process \d+, \S+\) was killed by signal 9 \(Killed\); "
        r"the others go on \(MOBIUS_ON_DEATH=error\)\n",
        done.stderr.decode(),
    ), done.stderr.decode()
    expect_others(done, ranks, seed)
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("scenario", [each for each in KILLED if each not in ON_ONE_HOST])
def test_others_go_on_between_hosts(launcher: Launcher, scenario: str) -> None:
    seed = SEED * 1000 + 700 + KILLED.index(scenario)
    print(f"seed {seed}")
    words = ["-n", "4", "--virtual-hosts", "2", "--on-death", "error", driver()]
    env = {"MOBIUS_PEER_TIMEOUT_MS": "5000", "MOBIUS_LOG": "error"}
    done = launcher.run(*words, scenario, str(seed), env=env)
    assert re.fullmatch(
        rf"mobius run: rank {seed % 4} \(process \d+, \S+\) was killed by signal 9 \(Killed\); "
        r"the others go on \(MOBIUS_ON_DEATH=error\)\n",
        done.stderr.decode(),
    ), done.stderr.decode()
    expect_others(done, 4, seed)
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("scenario", ["held_mutex", "held_exclusive", "held_shared", "lock_all"])
def test_locks_of_the_dead_between_hosts(launcher: Launcher, scenario: str) -> None:
    words = ["-n", "4", "--virtual-hosts", "2", "--on-death", "error", driver(), scenario, "3"]
    env = {"MOBIUS_PEER_TIMEOUT_MS": "5000", "MOBIUS_LOG": "error"}
    done = launcher.run(*words, env=env)
    assert done.stderr.decode().count("\n") == 1, done.stderr.decode()
    expect_others(done, 4, 3)
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("hosts", "step"), [(1, 3), (2, 7), pytest.param(1, 1, marks=pytest.mark.full)]
)
def test_all_hear_of_refused_memory_at_the_start(launcher: Launcher, hosts: int, step: int) -> None:
    program = Path(command()).parent / "no_memory"
    if not program.exists():
        pytest.skip("this build has no program that is refused memory")
    words = ["-n", "2", "--virtual-hosts", str(hosts), "--on-death", "error", str(program)]
    refused = 0
    for which in range(1, 1000, step):
        done = launcher.run(*words, "start", str(which))
        said = sorted(done.stdout.decode().split("\n")[:2])
        if said == ["MOB_OK", "MOB_OK whole"]:
            assert refused > 10
            return
        # Optional memory is done without.
        assert said in (["MOB_ERR_MEMORY", "MOB_ERR_PEER"], ["MOB_OK", "MOB_OK"]), (which, done)
        refused += said[0] != "MOB_OK"
    pytest.fail("mob_init() asks for memory a thousand times")


@pytest.mark.parametrize("scenario", ["contiguous", "barrier", "counters", "finalize"])
def test_job_ends(launcher: Launcher, scenario: str) -> None:
    seed = SEED * 1000 + 500 + KILLED.index(scenario)
    print(f"seed {seed}")
    done = launcher.run("-n", "3", driver(), scenario, str(seed))
    assert re.fullmatch(
        rf"mobius run: rank {seed % 3} \(process \d+, \S+\) was killed by signal 9 \(Killed\); "
        r"the other 2 ranks were ended\n",
        done.stderr.decode(),
    ), done.stderr.decode()
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("round_", range(4))
def test_death_while_joining(launcher: Launcher, round_: int) -> None:
    seed = SEED * 1000 + 600 + round_
    print(f"seed {seed}")
    words = ["-n", "3", "--on-death", "error", driver(), "joining", str(seed), "3"]
    done = launcher.run(*words)
    expect_others(done, 3, seed)
    lines = done.stderr.decode().splitlines()
    told = [line for line in lines if "was killed by signal 9 (Killed)" in line]
    assert len(told) == 1, lines
    assert all(line.startswith("mobius run: rank ") for line in lines), lines
    assert done.returncode in (128 + signal.SIGKILL, 3)


def test_exit_without_finalize(launcher: Launcher) -> None:
    done = launcher.run("-n", "3", "--on-death", "error", driver(), "leave_early", "1")
    expect_others(done, 3, 1)
    assert re.fullmatch(
        r"mobius run: rank 1 \(process \d+, \S+\) exited without mob_finalize\(\); "
        r"the others go on \(MOBIUS_ON_DEATH=error\)\n",
        done.stderr.decode(),
    ), done.stderr.decode()
    assert done.returncode == 1


@pytest.mark.parametrize("on_death", ["end", "error"])
def test_abort_ends_everything(launcher: Launcher, on_death: str) -> None:
    done = launcher.run("-n", "3", "--on-death", on_death, driver(), "abort", "2")
    said, told = done.stderr.decode().splitlines()
    assert "mob_abort(42): because" in said
    assert told.endswith("exited with code 42; the other 2 ranks were ended")
    assert done.returncode == 42


@pytest.mark.parametrize("on_death", ["end", "error"])
def test_abort_with_success_ends_everything(launcher: Launcher, on_death: str) -> None:
    done = launcher.run("-n", "3", "--on-death", on_death, driver(), "end", "2")
    assert done.stderr == b""
    assert done.returncode == 0


def test_wrapper_killed(launcher: Launcher) -> None:
    """The process behind a wrapper dies with it: the others take over its locks."""
    script = '"$0" patient 1; true'
    process = launcher.start("-n", "3", "--on-death", "error", "sh", "-c", script, driver())
    assert process.stdout is not None
    ready = sorted(process.stdout.readline() for _ in range(3))
    assert ready == [f"rank {rank} ready\n".encode() for rank in range(3)]
    wrapper = next(pid for pid in launcher.named("sh") if b"MOBIUS_RANK=1" in variables_of(pid))
    os.kill(wrapper, signal.SIGKILL)
    code, out, err = launcher.finish(process)
    assert re.fullmatch(
        r"mobius run: rank 1 \(process \d+, sh\) was killed by signal 9 \(Killed\); "
        r"the others go on \(MOBIUS_ON_DEATH=error\)\n",
        err,
    ), err
    assert survivors(out) == [0, 2]
    assert code == 128 + signal.SIGKILL


def test_ranks_that_end_before_any_joins(launcher: Launcher) -> None:
    """All of them count as dead when another rank joins, which would wait for them for ever."""
    script = """
    if [ $MOBIUS_RANK != 2 ]; then echo $$ > "$D/new.$MOBIUS_RANK"; exit 0; fi
    for rank in 0 1; do
      until read pid < "$D/new.$rank"; do :; done
      while [ -e /proc/$pid ]; do :; done
    done 2> /dev/null
    exec "$0" joining 0 3
    """
    done = launcher.run("-n", "3", "--on-death", "error", "sh", "-c", script, driver())
    ends = "exited without mob_init(), which another rank has called; the others go on"
    said = sorted(done.stderr.decode().splitlines())[:2]
    for rank, line in enumerate(said):
        assert line.startswith(f"mobius run: rank {rank} "), said
        assert ends in line, said
    assert survivors(done.stdout) == [2]


PTRACE_SEIZE, WAIT_FOR_THREADS = 0x4206, 0x40000000


def test_process_that_is_long_in_ending(launcher: Launcher) -> None:
    """The launcher waits for the exit status, which says more than the lost connection."""
    process = launcher.start("-n", "2", "--on-death", "error", driver(), "patient", "1")
    assert process.stdout is not None
    ready = sorted(process.stdout.readline() for _ in range(2))
    assert ready == [b"rank 0 ready\n", b"rank 1 ready\n"]
    rank = next(
        pid for pid in launcher.named("fault_driver") if b"MOBIUS_RANK=1" in variables_of(pid)
    )
    thread = max(int(task.name) for task in Path(f"/proc/{rank}/task").iterdir())
    assert thread != rank
    # The kernel keeps a process until the tracer of each of its threads has seen the thread's end.
    if ctypes.CDLL(None).ptrace(PTRACE_SEIZE, thread, None, None) != 0:
        process.kill()
        pytest.skip("no right to trace here")
    os.kill(rank, signal.SIGKILL)
    wait_until(lambda: state_of(rank) == "Z", "the rank is killed")
    time.sleep(1)  # ten times as long as the launcher waits for the status of a living process
    os.waitpid(thread, WAIT_FOR_THREADS)
    code, out, err = launcher.finish(process)
    assert "rank 1 " in err
    assert "was killed by signal 9" in err
    assert err.count("\n") == 1
    assert (code, survivors(out)) == (128 + signal.SIGKILL, [0])


def voluntary_switches(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)
    assert match
    return int(match[1])


def test_stopped_rank_is_waited_for(launcher: Launcher) -> None:
    process = launcher.start("-n", "3", "--on-death", "error", driver(), "stop", "1")
    stopped = wait_until(
        lambda: [p for p in launcher.named("fault_driver") if state_of(p) == "T"], "a rank stops"
    )
    assert process.stdout is not None
    assert sorted(process.stdout.readline() for _ in range(2)) == [
        b"rank 0 done\n",
        b"rank 2 done\n",
    ]
    # The others check the stopped one about every 100 ms of their wait.
    others = [pid for pid in launcher.named("fault_driver") if pid not in stopped]
    before = {pid: voluntary_switches(pid) for pid in others}
    wait_until(
        lambda: all(voluntary_switches(pid) > before[pid] + 3 for pid in others), "looks were made"
    )
    assert len(launcher.named("fault_driver")) == 3
    os.kill(stopped[0], signal.SIGCONT)
    code, out, err = launcher.finish(process)
    assert (code, err) == (0, "")
    assert survivors(out) == [0, 1, 2]


def test_more_memory_than_there_is(launcher: Launcher) -> None:
    done = launcher.run("-n", "2", driver(), "memory", "0")
    assert (done.returncode, done.stderr) == (0, b"")


def test_limit_on_the_size_of_files(launcher: Launcher) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

    done = launcher.run("-n", "2", driver(), "memory", "0", preexec_fn=limit)
    assert done.returncode == 1
    assert re.fullmatch(
        r"mobius run: the limit on the size of files \(ulimit -f\).*\n", done.stderr.decode()
    )


def test_limit_on_address_space(launcher: Launcher) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    done = launcher.run("-n", "2", driver(), "limited", "0", preexec_fn=limit)
    assert (done.returncode, done.stderr, survivors(done.stdout)) == (0, b"", [0, 1])


@pytest.mark.parametrize("mib", [64, 128])
def test_too_little_address_space(launcher: Launcher, mib: int) -> None:
    """Too little for the window, or for the rest: the text says what to do."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    done = launcher.run("-n", "2", driver(), "limited", "0", preexec_fn=limit)
    # The driver continues after the error, as after those that it provokes.
    assert done.returncode != 0
    assert re.search(r"mob_init.*\(ulimit -v\)", done.stderr.decode())


def test_limit_on_private_memory(launcher: Launcher) -> None:
    """The text names the limit that is in the way, which is not that on address space."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (12 << 20, 12 << 20))

    done = launcher.run("-n", "2", driver(), "limited", "0", preexec_fn=limit)
    assert done.returncode != 0
    assert re.search(r"mob_init.*\(ulimit -d\), 12 MiB", done.stderr.decode())
    assert "ulimit -v" not in done.stderr.decode()


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group below this process's that allows 256 MiB."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    places = [
        (f"/sys/fs/cgroup/memory{group}", "memory.limit_in_bytes")
        for _, controllers, group in lines
        if "memory" in controllers.split(",")
    ] + [(f"/sys/fs/cgroup{group}", "memory.max") for number, _, group in lines if number == "0"]
    for parent, name in places:
        group = Path(parent) / f"mobius-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(str(256 << 20))
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("no right to make a control group that limits memory here")


def test_limit_of_a_control_group(launcher: Launcher, small_group: Path) -> None:
    script = f'echo $$ > {small_group}/cgroup.procs && exec "$@"'
    words = ["sh", "-c", script, "sh"]
    process = launcher.start("-n", "2", driver(), "limited", "0", prefix=words)
    code, out, err = launcher.finish(process)
    assert (code, err, survivors(out)) == (0, "", [0, 1])


@pytest.mark.parametrize("scenario", ["limited_at_once", "moved_at_once"])
def test_limit_of_a_control_group_for_two_at_once(
    launcher: Launcher, small_group: Path, scenario: str
) -> None:
    script = f'echo $$ > {small_group}/cgroup.procs && exec "$@"'
    words = ["sh", "-c", script, "sh"]
    process = launcher.start("-n", "2", driver(), scenario, "0", prefix=words)
    code, out, err = launcher.finish(process)
    assert (code, err, survivors(out)) == (0, "", [0, 1])


def test_tiny_dev_shm(launcher: Launcher) -> None:
    """Shared memory does not come from /dev/shm, whose size therefore does not matter."""
    script = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount file systems here")
    process = launcher.start("-n", "2", driver(), "memory", "0", prefix=words)
    code, out, err = launcher.finish(process)
    assert (code, err, survivors(out)) == (0, "", [0, 1])

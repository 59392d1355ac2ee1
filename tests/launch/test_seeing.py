# SPDX-License-Identifier: BSD-3-Clause
"""What a job shows of itself: MOBIUS_STATS, MOBIUS_TRACE and MOBIUS_HOOKS."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from launch_tools import Launcher, command, python

LIBRARY = Path(command()).parents[1] / "lib" / "libmobius.so"

# Each rank puts 3 times 8 and once 100 bytes to rank 0, adds to a word of it, and meets the others.
PROGRAM = [
    "import ctypes, os, signal, sys",
    f"m = ctypes.CDLL({str(LIBRARY)!r})",
    "m.mob_last_error.restype = ctypes.c_char_p",
    "m.mob_mem_local.restype = ctypes.c_void_p",
    "def check(status):",
    "    if status != 0: sys.exit(f'{status}: {m.mob_last_error().decode()}')",
    "check(m.mob_init())",
    "mem, at = ctypes.c_void_p(), ctypes.c_void_p()",
    "check(m.mob_mem_alloc(ctypes.c_size_t(4096), ctypes.byref(mem)))",
    "check(m.mob_mem_address(mem, 0, ctypes.c_size_t(0), ctypes.byref(at)))",
    "data, old = ctypes.create_string_buffer(100), ctypes.c_uint64()",
    "for i in range(3): check(m.mob_put8(0, at, ctypes.c_uint64(i)))",
    "check(m.mob_put(0, at, data, ctypes.c_size_t(100)))",
    "check(m.mob_fetch_add8(0, at, ctypes.c_uint64(1), ctypes.byref(old)))",
    "check(m.mob_barrier())",
    "if os.environ.get('DIE'):",
    "    for i in range(2000): check(m.mob_put8(0, at, ctypes.c_uint64(i)))",
    "    os.kill(os.getpid(), signal.SIGKILL)",
    "check(m.mob_finalize())",
]


@pytest.fixture(autouse=True)
def _loadable() -> None:
    done = subprocess.run([command(), "info", "--json"], capture_output=True, check=False)
    if json.loads(done.stdout)["build"]["sanitizers"]:
        pytest.skip("Python cannot load a sanitized library")


def _needs_network() -> None:
    words = [command(), "run", "--virtual-hosts", "2", "-n", "2", "true"]
    if subprocess.run(words, check=False, capture_output=True).returncode != 0:
        pytest.skip("this build has no network")


def events_of(text: str) -> list[dict[str, Any]]:
    """Events of a timeline, whether or not it was closed."""
    closed = text if text.rstrip().endswith("]") else text + "]"
    return list(json.loads(closed))


def test_stats_count_operations_bytes_and_paths(launcher: Launcher) -> None:
    done = launcher.run("-n", "2", *python(*PROGRAM), env={"MOBIUS_STATS": "1"})
    assert done.returncode == 0, done.stderr
    text = done.stderr.decode()
    for rank in range(2):
        table = re.search(rf"rank {rank}: operations by target\n((?: .*\n)+)", text)
        assert table, text
        lines = table[1].splitlines()
        assert len({len(line) for line in lines}) == 1  # columns are aligned
        titles = re.split(r"\s{2,}", lines[0].strip())
        row = dict(zip(titles, lines[1].split(), strict=True))
        assert row["target"] == "0"
        assert (row["puts"], row["put bytes"]) == ("4", "124")
        assert (row["words"], row["failed"], row["direct"]) == ("1", "0", "5")
        assert (row["messages"], row["msg bytes"]) == ("0", "0")
        assert lines[-1].split()[0] == "all"
        assert f"rank {rank}: collective calls: mob_barrier 1\n" in text


def test_stats_count_recorded_operations_and_the_cost_of_the_link(launcher: Launcher) -> None:
    _needs_network()
    done = launcher.run(
        "-n", "2", "--virtual-hosts", "2", *python(*PROGRAM),
        env={"MOBIUS_STATS": "1", "MOBIUS_MESSAGE_NS": "4321"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = done.stderr.decode()
    assert re.search(r"rank 1: schedule to 0: \d+ recorded, .* messages, \d+ saved\n", text)
    found = re.search(
        r"rank 1: link to 0: latency ([\d.]+) us, out \d+ MB/s, in \d+ MB/s,"
        r" one more message 4.3 us\n",
        text,
    )
    assert found
    assert float(found[1]) > 0


# Rank 1 puts and gets nothing that is small: what goes alone tells of the link, too.
LONG = [
    *PROGRAM[:7],
    "mem, at = ctypes.c_void_p(), ctypes.c_void_p()",
    "check(m.mob_mem_alloc(ctypes.c_size_t(40000), ctypes.byref(mem)))",
    "check(m.mob_mem_address(mem, 0, ctypes.c_size_t(0), ctypes.byref(at)))",
    "data = ctypes.create_string_buffer(40000)",
    "for i in range(3 if m.mob_rank() == 1 else 0):",
    "    check(m.mob_put_nbi(0, at, data, ctypes.c_size_t(40000)))",
    "    check(m.mob_flush(0))",
    "    check(m.mob_get_nbi(0, at, data, ctypes.c_size_t(40000)))",
    "    check(m.mob_flush(0))",
    "check(m.mob_finalize())",
]


def test_operations_issued_alone_measure_the_link(launcher: Launcher) -> None:
    found = re.search(
        r"rank 1: link to 0: latency [\d.]+ us, out (\d+) MB/s, in (\d+) MB/s",
        _statistics(launcher, LONG),
    )
    assert found
    unknown = "1000"  # what is assumed before anything is known
    assert unknown not in found.groups()


# Rank 1 puts 20,000 bytes, too many to be copied, while it has exclusive access to rank 0.
ENDED = [
    *PROGRAM[:7],
    "mem, at, access = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()",
    "check(m.mob_mem_alloc(ctypes.c_size_t(20000), ctypes.byref(mem)))",
    "check(m.mob_mem_address(mem, 0, ctypes.c_size_t(0), ctypes.byref(at)))",
    "check(m.mob_access_create(ctypes.c_void_p(1), ctypes.byref(access)))",
    "data = ctypes.create_string_buffer(20000)",
    "if m.mob_rank() == 1:",
    "    check(m.mob_access_lock(access, 0, 1, None))",
    "    check(m.mob_put_nbi(0, at, data, ctypes.c_size_t(20000)))",
    "    check(m.mob_access_unlock(access, 0))",
    "check(m.mob_access_free(access))",
    "check(m.mob_finalize())",
]


def _statistics(launcher: Launcher, program: list[str]) -> str:
    """What two ranks on two hosts report of what they did."""
    _needs_network()
    done = launcher.run(
        "-n", "2", "--virtual-hosts", "2", *python(*program), env={"MOBIUS_STATS": "1"}
    )
    text = done.stderr.decode()
    assert done.returncode == 0, text
    return text


def test_the_end_of_access_behind_an_operation_issued_alone_is_no_packed_message(
    launcher: Launcher,
) -> None:
    counts = "1 recorded, 0 merged, 0 packed, 0 re-ordered, 1 messages, 0 saved"
    assert f"rank 1: schedule to 0: {counts}\n" in _statistics(launcher, ENDED)


# Rank 1 puts three values, each under access of its own that it only starts.
STARTED = [
    *ENDED[:-6],
    "for i in range(3 if m.mob_rank() == 1 else 0):",
    "    check(m.mob_access_lock_nbi(access, 0, 1))",
    "    check(m.mob_put_nbi(0, at, data, ctypes.c_size_t(8)))",
    "    check(m.mob_access_unlock(access, 0))",
    *ENDED[-2:],
]


def test_the_lock_travels_with_the_operations_under_it(launcher: Launcher) -> None:
    counts = "3 recorded, 0 merged, 0 packed, 0 re-ordered, 3 messages, 0 saved"
    assert f"rank 1: schedule to 0: {counts}\n" in _statistics(launcher, STARTED)


# Rank 1 puts four neighbours, which become one transfer that is long enough to be moved.
MOVED = [
    *PROGRAM[:7],
    "mem, at = ctypes.c_void_p(), ctypes.c_void_p()",
    "check(m.mob_mem_alloc(ctypes.c_size_t(262144), ctypes.byref(mem)))",
    "check(m.mob_mem_address(mem, 0, ctypes.c_size_t(0), ctypes.byref(at)))",
    "data = ctypes.create_string_buffer(262144)",
    "for i in range(4 if m.mob_rank() == 1 else 0):",
    "    part = ctypes.c_size_t(65536)",
    "    there = ctypes.c_void_p(at.value + i * 65536)",
    "    here = ctypes.byref(data, i * 65536)",
    "    check(m.mob_put_nbi(0, there, here, part))",
    "check(m.mob_flush(0))",
    "check(m.mob_finalize())",
]


# Rank 1 puts and gets what is short enough for a message and long enough to go without one where
# there is a key, which the first of each memory brings.
KEYED = [
    *PROGRAM[:7],
    "n = ctypes.c_size_t(70000)",
    "data = ctypes.create_string_buffer(70000)",
    "for calls in ((m.mob_put, m.mob_put, m.mob_get), (m.mob_get, m.mob_get, m.mob_put)):",
    "    mem, at = ctypes.c_void_p(), ctypes.c_void_p()",
    "    check(m.mob_mem_alloc(n, ctypes.byref(mem)))",
    "    check(m.mob_mem_address(mem, 0, ctypes.c_size_t(0), ctypes.byref(at)))",
    "    for call in calls if m.mob_rank() == 1 else ():",
    "        check(call(0, at, data, n))",
    "        check(m.mob_flush(0))",
    "    check(m.mob_mem_free(mem))",
    "check(m.mob_finalize())",
]


def _schedule_of(
    launcher: Launcher, program: list[str], name: str, rma_bytes: str = "128K"
) -> list[dict[str, object]]:
    """What the timeline of rank 1 of two hosts has of the events of that name of the scheduler."""
    _needs_network()
    done = launcher.run(
        "-n", "2", "--virtual-hosts", "2", *python(*program),
        env={"MOBIUS_TRACE": str(launcher.folder / "%r.json"), "MOBIUS_RMA_BYTES": rma_bytes},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = json.loads((launcher.folder / "1.json").read_text())
    return [event["args"] for event in events if event["name"] == name]


def _plan_of(launcher: Launcher) -> str:
    done = subprocess.run(
        [command(), "explain", "--epoch", "1", str(launcher.folder / "1.json")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def test_operations_issued_alone_are_in_the_timeline(launcher: Launcher) -> None:
    issued = _schedule_of(launcher, LONG, "issued")
    assert issued == [{"target": 0, "bytes": 40000, "path": "alone", "status": 0}] * 6
    assert "alone   put at " in _plan_of(launcher)


def test_moved_operations_are_in_the_timeline(launcher: Launcher) -> None:
    issued = _schedule_of(launcher, MOVED, "issued")
    assert issued == [{"target": 0, "bytes": 262144, "path": "remote memory", "status": 0}]
    assert "262144 bytes  (operations 1 … 4 merged), by remote memory" in _plan_of(launcher)


def test_operations_with_a_key_of_their_target_use_it(launcher: Launcher) -> None:
    issued = _schedule_of(launcher, KEYED, "issued", "auto")
    alone, got, unasked = "alone", "remote memory", "remote memory, unasked"
    paths = [alone, unasked, got, alone, got, unasked]  # in the second memory a get comes first
    assert issued == [
        {"target": 0, "bytes": 70000, "path": path, "status": 0} for path in paths
    ]  # fmt: skip


def test_operations_with_their_lock_are_in_the_timeline(
    launcher: Launcher,
) -> None:
    issued = _schedule_of(launcher, STARTED, "issued")
    assert issued == [{"target": 0, "operations": 1, "status": 0}] * 3
    recorded = _schedule_of(launcher, STARTED, "recorded")
    assert [event["policy"] for event in recorded] == ["aggregate"] * 3
    assert "packed  put at " in _plan_of(launcher)


def test_nothing_is_printed_without_being_asked_for(launcher: Launcher) -> None:
    done = launcher.run("-n", "2", *python(*PROGRAM))
    assert (done.returncode, done.stderr) == (0, b"")


def test_timeline_has_what_perfetto_needs(launcher: Launcher) -> None:
    name = launcher.folder / "trace.json"
    done = launcher.run("-n", "2", *python(*PROGRAM), env={"MOBIUS_TRACE": str(name)})
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        events = json.loads((launcher.folder / f"trace.{rank}.json").read_text())
        assert events[0]["ph"] == "M"
        assert events[0]["args"] == {"name": f"rank {rank}"}
        for event in events[1:]:
            assert event["ph"] == "X"
            assert event["pid"] == rank
            assert event["tid"] > 0
            assert event["ts"] > 0
            assert event["dur"] >= 0
        puts = [event for event in events if event["name"] == "mob_put8"]
        assert len(puts) == 3
        assert puts[0]["args"] == {
            "target": 0,
            "bytes": 8,
            "kind": "put",
            "path": "direct",
            "status": 0,
        }
        assert any(event["name"] == "mob_barrier" for event in events)


def test_timeline_of_a_killed_rank_is_readable(launcher: Launcher) -> None:
    settings = {"MOBIUS_TRACE": str(launcher.folder / "%r.trace"), "DIE": "1"}
    done = launcher.run("-n", "1", *python(*PROGRAM), env=settings)
    assert done.returncode == 128 + signal.SIGKILL
    text = (launcher.folder / "0.trace").read_text()
    assert not text.rstrip().endswith("]")
    assert len(events_of(text)) > 100


def test_timeline_ends_at_its_limit(launcher: Launcher) -> None:
    program = [*PROGRAM[:-1], "for i in range(20000): m.mob_put8(0, at, 0)", PROGRAM[-1]]
    settings = {"MOBIUS_TRACE": str(launcher.folder / "t.json"), "MOBIUS_TRACE_BYTES": "1M"}
    done = launcher.run("-n", "1", *python(*program), env=settings)
    assert done.returncode == 0
    assert b"MOBIUS_TRACE_BYTES" in done.stderr
    file = launcher.folder / "t.0.json"
    assert file.stat().st_size <= (1 << 20) + 8
    assert len(json.loads(file.read_text())) > 1000


def test_timeline_that_cannot_be_written_is_an_error(launcher: Launcher) -> None:
    done = launcher.run("-n", "2", *python(*PROGRAM), env={"MOBIUS_TRACE": "/nowhere/t.json"})
    assert done.returncode != 0
    assert b"MOBIUS_TRACE" in done.stderr
    assert os.strerror(2).encode() in done.stderr


def test_fault_hook_fails_operations(launcher: Launcher) -> None:
    done = launcher.run("-n", "1", *python(*PROGRAM), env={"MOBIUS_HOOKS": "fault:every=2"})
    assert done.returncode != 0
    assert b"injected" in done.stderr


def test_malformed_hooks_are_refused(launcher: Launcher) -> None:
    done = launcher.run("-n", "1", *python(*PROGRAM), env={"MOBIUS_HOOKS": "fault:every=0"})
    assert done.returncode != 0
    assert b"MOBIUS_HOOKS='fault:every=0'" in done.stderr

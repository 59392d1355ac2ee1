# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that take turns: real programs and the conductor."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import permutations
from pathlib import Path

import pytest
from instrument_tools import FakeInstrument, SyntheticRun, processes_of
from mobius_instrument.cells import Cell
from mobius_instrument.experiments import Job
from mobius_instrument.libraries.base import Library
from mobius_instrument.libraries.mpi import MPI_CELLS
from mobius_instrument.presentation import write_report
from mobius_instrument.presentation.analysis import Analysis
from mobius_instrument.results import LibraryRecord, read_results
from mobius_instrument.steps import group_of, takes_turns
from mobius_instrument.turns.board import FIRST_ROUND, Board, Conductor

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("MOBIUS_HOME_BIN") or ROOT / "build" / "release" / "bin")
PUT = "completion:put:flush:allocate"
CELLS = [str(cell) for cell in MPI_CELLS]

pytestmark = pytest.mark.skipif(
    not (BIN / "conductor").exists() or not (BIN / "suite_mobius").exists(),
    reason="the conductor or Möbius' test-suite was not built",
)


@pytest.fixture
def turning(instrument: FakeInstrument) -> FakeInstrument:
    """The fake MPI beside the real Möbius and the limits."""
    instrument.environment["MOBIUS_HOME_BIN"] = str(BIN)
    return instrument


def arguments(instrument: FakeInstrument, *libraries: str) -> list[str]:
    words = instrument.bench_arguments()
    words[words.index("--libs") + 1] = ",".join(libraries)
    words[words.index("--sizes") + 1] = "2"
    return words


def test_all_are_measured_in_the_same_rounds(turning: FakeInstrument) -> None:
    words = arguments(turning, "mobius", "limits")
    del words[words.index("--mpicc") : words.index("--mpicc") + 2]
    done = turning.run(*words)
    assert done.returncode == 0, done.stderr
    rounds = {record["round"]: record for record in turning.records("round")}
    assert len(rounds) >= 9
    assert min(rounds) == FIRST_ROUND
    samples = turning.records("samples")
    assert {record["library"] for record in samples} == {"mobius", "limits"}
    starts = {round_["start"] for round_ in rounds.values()}
    assert len(starts) == 3
    for record in samples:
        measured = [number for number, _ in record["rounds"]]
        start = rounds[measured[0]]["start"]
        assert measured == sorted(number for number in rounds if rounds[number]["start"] == start)
        assert sum(count for _, count in record["rounds"]) == len(record["samples_ns"])
    orders = {tuple(turn[0] for turn in record["turns"]) for record in rounds.values()}
    # Möbius' messages are a program of their own.
    assert orders == set(permutations(("mobius", "mobius", "limits")))
    launches = turning.records("launch")
    assert all(launch["turns"] and launch["others_s"] is None for launch in launches)
    concerts = turning.records("concert")
    assert [concert["programs"] for concert in concerts] == [3, 3, 3]
    seconds = sum(concert["seconds"] for concert in concerts)
    assert 0 < seconds < sum(launch["seconds"] for launch in launches) + 60
    for concert in concerts:
        most_s = concert["seconds"] * (os.cpu_count() or 1)
        assert concert["others_s"] + concert["stolen_s"] < most_s
    results = read_results(turning.out / "results.jsonl")
    times = results.samples["mobius", Cell.parse(PUT)][8]
    assert sorted(times) == sorted(rounds)


# Five: more than launches that may fail in a row, but each has a result.
@pytest.mark.parametrize(("does", "times"), [("crash", 5), ("abort", 1)])
def test_one_that_fails_in_its_turn_stops_nobody(
    turning: FakeInstrument, does: str, times: int
) -> None:
    failing = CELLS[1 : 2 * times : 2]
    turning.behave(dict.fromkeys(failing, does))
    done = turning.run(*arguments(turning, "mobius", "mpicc1"))
    assert done.returncode == 0, done.stderr
    assert {cell: status for cell, [(status, _)] in turning.outcomes().items()} == dict.fromkeys(
        failing, "crashed"
    )
    measured = {(one["library"], one["cell"]) for one in turning.records("samples")}
    assert {("mpicc1", cell) for cell in CELLS if cell not in failing} <= measured
    assert ("mobius", PUT) in measured


def test_an_interrupt_before_all_are_started_leaves_nothing(turning: FakeInstrument) -> None:
    pipe = turning.folder / "reached"
    os.mkfifo(pipe)
    turning.behave({CELLS[0]: f"wait:{pipe}"})
    process = subprocess.Popen(
        turning.command(*arguments(turning, "mobius", "mpicc1"), "--timeout", "500"),
        env=turning.full_environment(), cwd=turning.folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    program = int(pipe.read_text())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert not Path(f"/proc/{program}").exists()
    assert processes_of(turning.folder) == []


def children_of(process: int) -> dict[int, str]:
    words = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {int(pid): Path(f"/proc/{pid}/cmdline").read_text() for pid in words}


def conductor_of(process: int) -> int:
    (pid,) = (pid for pid, words in children_of(process).items() if "conductor" in words)
    return pid


@pytest.mark.parametrize(
    ("number", "whom", "code"),
    [
        (signal.SIGINT, "instrument", 130),
        (signal.SIGKILL, "instrument", -signal.SIGKILL),
        (signal.SIGKILL, "conductor", 2),
        (signal.SIGKILL, "fork", 2),
    ],
)
def test_nothing_is_left_whoever_ends_in_a_turn(
    turning: FakeInstrument, number: signal.Signals, whom: str, code: int
) -> None:
    words = arguments(turning, "mobius", "limits")
    del words[words.index("--mpicc") : words.index("--mpicc") + 2]
    words[words.index("--sizes") + 1] = ",".join(str(1 << power) for power in range(18))
    process = subprocess.Popen(
        turning.command(*words), env=turning.full_environment(), cwd=turning.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    results = turning.out / "results.jsonl"
    while not results.exists() or '"round"' not in results.read_text():
        time.sleep(0.01)
    conductor = conductor_of(process.pid)
    fork = next(pid for pid in children_of(process.pid) if pid != conductor)
    os.kill({"instrument": process.pid, "conductor": conductor, "fork": fork}[whom], number)
    _, errors = process.communicate()
    assert process.returncode == code, errors
    if code == 2:
        assert errors.endswith("measured cells are kept, the same command goes on\n")
    while processes_of(turning.folder):  # without the instrument, they end by themselves
        time.sleep(0.05)
    assert turning.records("outcome") == []


# Takes turns as a program does. `spins`: uses its processor while it waits.
PROGRAM = """
import os, struct, sys, time
path, number = sys.argv[1].rsplit(":", 1)
at = 64 + 512 * int(number)
import mmap
board = mmap.mmap(os.open(path, os.O_RDWR), 0)
word = lambda offset: struct.unpack_from("<I", board, at + offset)[0]
put = lambda offset, value: struct.pack_into("<I", board, at + offset, value)
put(64, os.getpid())
put(4, 1)
seen = word(0)
while True:
    put(8, 1)
    while word(0) == seen:
        if sys.argv[2] != "spins":
            time.sleep(0.001)
    seen += 1
    time.sleep(0.004)
    if word(12) == 2:
        break
"""


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_who_spins_is_stopped_for_the_turns_of_others(tmp_path: Path) -> None:
    board = Board(tmp_path / "board", 2)
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, board.place(number), how])
        for number, how in enumerate(("sleeps", "spins"))
    ]
    try:
        while not (board.waits(0) and board.waits(1)):
            time.sleep(0.01)
        conductor = Conductor(BIN / "conductor", board, 6, FIRST_ROUND, 1, (0, 1))
        seen = set()
        left = {0, 1}
        while left:
            seen.add(state_of(programs[1].pid) if 1 in left else "")
            for number in list(left):
                if programs[number].poll() is not None:
                    board.leave(number)
                    left.remove(number)
            time.sleep(0.0005)
        os.set_blocking(conductor.output.fileno(), True)
        rounds = [json.loads(line) for line in conductor.output]
        conductor.stop()
    finally:
        for program in programs:
            program.kill()
            program.wait()
        board.close()
    assert len(rounds) >= 6
    assert rounds[-1]["stopped"] == [1]
    assert "T" in seen
    assert [program.returncode for program in programs] == [0, 0]


@pytest.mark.parametrize("killed", [False, True])
def test_nobody_stays_stopped_when_the_conductor_ends(tmp_path: Path, killed: bool) -> None:
    board = Board(tmp_path / "board", 2)
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, board.place(number), how])
        for number, how in enumerate(("sleeps", "spins"))
    ]
    try:
        while not (board.waits(0) and board.waits(1)):
            time.sleep(0.01)
        conductor = Conductor(BIN / "conductor", board, 100_000, FIRST_ROUND, 1, (0, 1))
        while state_of(programs[1].pid) != "T":
            time.sleep(0.0005)
        if killed:
            os.kill(conductor_of(os.getpid()), signal.SIGKILL)
        conductor.stop()
        if killed:
            board.wake_all(1)
        assert state_of(programs[1].pid) != "T"
    finally:
        for program in programs:
            program.kill()
            program.wait()
        board.close()


def test_a_ratio_is_of_the_same_rounds(tmp_path: Path) -> None:
    """The machine is up to three times slower in some rounds: the ratio does not change."""
    run = SyntheticRun(tmp_path / "run" / "results.jsonl")
    for name in ("mobius", "mpich", "alone"):
        run.library(name, name, "mobius" if name == "mobius" else "mpi")
    for number in range(12):
        run.round(number, moved=number == 3)
    run.in_rounds("mobius", PUT, 100.0)
    run.in_rounds("mpich", PUT, 103.0)
    run.series("alone", PUT, lambda *_: 50.0, sizes=(8,))
    analysis = Analysis(read_results(run.write()))
    mobius, mpich, alone = (
        analysis.one(name, Cell.parse(PUT)) for name in ("mobius", "mpich", "alone")
    )
    assert mobius is not None
    assert mpich is not None
    assert alone is not None
    assert analysis.comparable(mpich, mobius, 8)
    assert not analysis.comparable(mpich, alone, 8)
    ratio = analysis.ratio(mpich, mobius, 8)
    assert ratio.value == pytest.approx(1.03, abs=0.002)
    assert ratio.low > 1.02
    assert mobius.summaries[8].launches == 11


COMPARED = {
    "sync-cost:put:flush:allocate": 4,
    "bandwidth:put:flush:allocate:dir=one:touch=1": 65536,
    "atomics:fetch_op:flush:allocate:word=one:procs=2": 8,
    "apex:get:flush:allocate:k=1": 8,
    "pingpong:put:flush:allocate": 8,
    "pingpong:sendrecv:none:local": 8,
}


@pytest.mark.parametrize("together", [True, False])
def test_no_sentence_compares_times_of_other_rounds(tmp_path: Path, together: bool) -> None:
    run = SyntheticRun(tmp_path / "run" / "results.jsonl")
    run.library("mobius", "Möbius 1.0", "mobius")
    run.library("lapi", "LAPI", "front")
    run.library("mpich", "Some MPI 1.0")
    for number in range(12):
        run.round(number)
    for cell, size in COMPARED.items():
        run.in_rounds("mobius", cell, 100.0, sizes=(size,))
        if together:
            run.in_rounds("mpich", cell, 200.0, sizes=(size,))
        else:
            run.series("mpich", cell, lambda *_: 50.0, sizes=(size,))
    run.in_rounds("lapi", PUT.replace("completion", "pingpong"), 120.0)
    write_report(read_results(run.write()), tmp_path)
    page = re.sub(r"<[^>]*>", "\0", (tmp_path / "index.html").read_text(encoding="utf-8"))
    # In a table a cell has no sentence.
    said = {
        re.sub(r"\s+", " ", text).partition(":")[0][:24]
        for text in page.split("\0")
        if "Some MPI" in text and re.search(r"[\d.] times|slower than|faster than", text)
    }
    assert (len(said) >= 5) == together, said
    assert together or not said


def test_who_takes_turns() -> None:
    library = Library(LibraryRecord("a", "a", "1", "mpi", "ready"))

    def job(experiment: str, program: str = "suite", dynamic: bool = False) -> Job:
        return Job(experiment, program, (), (8,), dynamic=dynamic)

    assert takes_turns(library, job("pingpong"))
    assert takes_turns(library, job("sync-cost"))
    assert not takes_turns(library, job("lu", "lu"))
    assert not takes_turns(library, job("sync-cost", dynamic=True))
    assert not takes_turns(library, job("progress"))
    cell = Cell.parse("sync-cost:put:flush:allocate")
    assert [group_of(cell, level) for level in range(4)] == ["", "put", "put:flush", str(cell)]

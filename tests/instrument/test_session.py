# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs with a fake MPI that does what libraries do wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from instrument_tools import FakeInstrument, processes_of
from mobius_instrument.libraries.mpi import MPI_CELLS, describe_version, launcher_for, suite_sources

CELLS = [str(cell) for cell in MPI_CELLS]
FIRST, SECOND, THIRD = CELLS[:3]


def test_everything_is_measured_in_every_repeat(instrument: FakeInstrument) -> None:
    done = instrument.bench("--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert instrument.launches() == [CELLS, CELLS]
    launches = instrument.records("launch")
    assert [launch["status"] for launch in launches] == ["ok", "ok"]
    assert len(instrument.records("samples")) == 2 * 3 * len(CELLS)
    (library,) = instrument.records("library")
    assert library["status"] == "ready"
    assert "9.9.9" in library["label"]
    (run,) = instrument.records("run")
    assert run["schema"] == 1
    assert run["plan"]["sizes"] == [4, 8, 4096]


@pytest.mark.parametrize(
    ("behaviour", "status", "detail"),
    [
        ("hang", "hung", "at 4 KB"),
        ("crash", "crashed", "SIGSEGV"),
        ("abort", "crashed", "internal error in progress engine"),
    ],
)
def test_a_cell_that_fails_stops_nobody_else(
    instrument: FakeInstrument, behaviour: str, status: str, detail: str
) -> None:
    instrument.behave({SECOND: behaviour})
    # A busy machine may let the healthy launches wait for seconds, too: short only where needed.
    stall_s = "5" if behaviour == "hang" else "60"
    done = instrument.bench("--repeats", "2", "--timeout", stall_s)
    assert done.returncode == 0, done.stderr
    assert instrument.outcomes() == {SECOND: [(status, 0)]}
    assert detail in instrument.records("outcome")[0]["detail"]
    # The rest of the launch again without it, and the next repeat without it.
    rest = [cell for cell in CELLS if cell != SECOND]
    assert instrument.launches() == [CELLS, CELLS[2:], rest]
    measured = {
        (record["cell"], record["repeat"], record["bytes"])
        for record in instrument.records("samples")
    }
    assert measured >= {(cell, repeat, 4096) for cell in rest for repeat in (0, 1)}
    assert (SECOND, 0, 8) in measured
    assert (SECOND, 0, 4096) not in measured
    assert processes_of(instrument.folder) == []


def test_refused_and_wrong(instrument: FakeInstrument) -> None:
    instrument.behave({FIRST: "refuse", THIRD: "wrong"})
    done = instrument.bench("--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert instrument.outcomes() == {
        FIRST: [("refused", 0)],
        THIRD: [("wrong", 0), ("wrong", 1)],
    }
    wrong = instrument.records("outcome")[1]
    assert wrong["bytes"] == 4096
    assert "byte 17 is 250, expected 3" in wrong["detail"]
    assert instrument.launches() == [CELLS, CELLS[1:]]


def test_a_library_that_does_not_start_is_given_up(instrument: FakeInstrument) -> None:
    instrument.behave({"start": "fail"})
    done = instrument.bench("--repeats", "3")
    assert done.returncode == 0, done.stderr
    assert len(instrument.launches()) == 1
    assert instrument.outcomes() == {cell: [("crashed", 0)] for cell in CELLS}
    assert "no such transport" in instrument.records("outcome")[0]["detail"]


def test_a_library_that_always_crashes_is_given_up(instrument: FakeInstrument) -> None:
    instrument.behave({"*": "crash"})
    done = instrument.bench("--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert len(instrument.launches()) == 4
    assert set(instrument.outcomes()) == set(CELLS)
    assert "not tried" in instrument.records("outcome")[-1]["detail"]


def test_processes_left_behind_are_ended_and_named(instrument: FakeInstrument) -> None:
    instrument.behave({"finish": "leave"})
    done = instrument.bench("--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert "sleep" in instrument.records("launch")[0]["detail"]
    assert processes_of(instrument.folder) == []


def test_a_suite_that_does_not_build(instrument: FakeInstrument) -> None:
    instrument.environment["FAKE_MPICC"] = "fail"
    done = instrument.bench()
    assert done.returncode == 2
    error = done.stderr.strip().splitlines()
    assert len(error) == 1
    assert "it has no one-sided communication as of MPI-3" in error[0]
    assert "unknown type name 'MPI_Win'" in error[0]


def test_an_mpi_that_is_too_old(instrument: FakeInstrument) -> None:
    instrument.environment |= {"FAKE_MPICC": "old", "FAKE_STANDARD": "2"}
    done = instrument.bench()
    assert done.returncode == 2
    assert "it is an MPI-2.0: the programs of the instrument need MPI-3" in done.stderr
    instrument.environment["FAKE_STANDARD"] = "4"
    assert "undefined reference to `MPI_Get_library_version'" in instrument.bench().stderr


def test_a_launcher_that_hangs_is_given_up(instrument: FakeInstrument) -> None:
    instrument.behave({"start": "hang"})
    done = instrument.bench("--repeats", "2", "--timeout", "2")
    assert done.returncode == 0, done.stderr
    assert len(instrument.launches()) == 1
    assert instrument.outcomes() == {cell: [("hung", 0)] for cell in CELLS}
    assert "wrote nothing for" in instrument.records("outcome")[0]["detail"]
    assert processes_of(instrument.folder) == []


def test_results_of_another_machine_are_set_aside(instrument: FakeInstrument) -> None:
    assert instrument.bench("--repeats", "1").returncode == 0
    path = instrument.out / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    run = json.loads(lines[0])
    run["host"]["hostname"] = "elsewhere"
    run["plan_hash"] = "other"
    path.write_text(json.dumps(run) + "\n" + "".join(lines[1:]), encoding="utf-8")
    done = instrument.bench("--repeats", "1")
    assert "is now results.1.jsonl: it is of another machine (elsewhere" in done.stdout


def test_interrupted_run_is_resumed(instrument: FakeInstrument) -> None:
    """Ctrl-C in the third cell: exit 130, nothing left, and only what is missing afterwards."""
    pipe = instrument.folder / "reached"
    os.mkfifo(pipe)
    instrument.behave({THIRD: f"wait:{pipe}"})
    process = subprocess.Popen(
        instrument.command(*instrument.bench_arguments(), "--repeats", "2", "--timeout", "500"),
        env=instrument.full_environment(),
        cwd=instrument.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    program = int(pipe.read_text())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "go on with: mobius bench" in errors
    assert not Path(f"/proc/{program}").exists()
    assert processes_of(instrument.folder) == []
    (launch,) = instrument.records("launch")
    assert (launch["status"], launch["ended"]) == ("interrupted", [FIRST, SECOND])
    before = (instrument.out / "results.jsonl").read_bytes()

    instrument.behave({})
    instrument.log.unlink()
    done = instrument.bench("--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert instrument.launches() == [CELLS[2:], CELLS]
    assert (instrument.out / "results.jsonl").read_bytes().startswith(before)
    assert [run["resumed"] for run in instrument.records("run")] == [False, True]

    instrument.log.unlink()
    done = instrument.bench("--repeats", "2")
    assert "everything is already measured" in done.stdout
    assert not instrument.log.exists()


def test_run_that_was_killed_is_resumed_after_a_half_line(instrument: FakeInstrument) -> None:
    assert instrument.bench("--repeats", "1").returncode == 0
    path = instrument.out / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    launch = next(i for i, line in enumerate(lines) if json.loads(line)["type"] == "launch")
    path.write_bytes(b"".join(lines[:launch]) + lines[launch][:25])
    instrument.log.unlink()
    done = instrument.bench("--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert "damaged line" in done.stdout
    assert instrument.launches() == [CELLS]


def test_another_plan_keeps_the_old_file(instrument: FakeInstrument) -> None:
    assert instrument.bench("--repeats", "1").returncode == 0
    first = (instrument.out / "results.jsonl").read_bytes()
    done = instrument.bench("--repeats", "1", "--seed", "5")
    assert "is now results.1.jsonl: its plan was another one" in done.stdout
    assert (instrument.out / "results.1.jsonl").read_bytes() == first
    done = instrument.bench("--repeats", "1", "--seed", "5", "--fresh")
    assert "is now results.2.jsonl" in done.stdout


def test_full_report_with_the_fake(instrument: FakeInstrument) -> None:
    arguments = [*instrument.bench_arguments()[1:], "--repeats", "1"]
    done = instrument.run("report", *arguments)
    assert done.returncode == 0, done.stderr
    assert f"report: {instrument.out.resolve() / 'index.html'}" in done.stdout
    for name in ("index.html", "results.csv", "plots/pingpong-put-time.png"):
        assert (instrument.out / name).stat().st_size > 0


def test_list_starts_nothing(instrument: FakeInstrument) -> None:
    done = instrument.run("bench", "--list", "--mpicc", instrument.bench_arguments()[5])
    assert done.returncode == 0, done.stderr
    for word in ("pingpong", "completion", "mobius", "mpich", "openmpi", "mpicc1"):
        assert word in done.stdout
    assert not instrument.out.exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["bench", "--libs", "nonsense"], "no library 'nonsense'"),
        (["bench", "latency"], "no experiment 'latency'"),
        (["bench", "--repeats", "0"], "--repeats: '0' is not a whole number"),
        (["bench", "--sizes", "many"], "'many' is not a number"),
        (["bench", "--sizes", "1000000m"], "sizes go from 4 bytes to 1 GiB"),
        (["bench", "--mpicc", "/nowhere/mpicc"], "/nowhere/mpicc"),
        (["bench", "--no-such-option"], "--no-such-option"),
        (["bench", "--no-peers", "--libs", "limits"], "suite_limits is not in"),
        (["report", "--from", "/nowhere/results.jsonl"], "no results at /nowhere/results.jsonl"),
        (["report", "--from", "x", "--full", "--libs", "a"], "and --libs, --full would measure"),
        (["bench", "--no-peers", "--intel"], "--no-peers forbids to install it"),
        (["bench", "--libs", "mobius", "--skip", "mobius"], "leave no library to measure"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_arguments_are_one_line(
    instrument: FakeInstrument, arguments: list[str], error: str
) -> None:
    done = instrument.run(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("mobius: error: ")
    assert error in line


def test_folder_that_cannot_be_written(instrument: FakeInstrument) -> None:
    """Below a file, which holds for root too."""
    (instrument.folder / "file").write_text("")
    place = str(instrument.folder / "file" / "report")
    for command in ("bench", "report"):
        done = instrument.run(command, *instrument.bench_arguments()[1:], "--out", place)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert f"cannot write to {place}" in line
    assert not instrument.log.exists()


def test_read_only_disk(instrument: FakeInstrument) -> None:
    """A mount of its own, which root cannot write to either."""
    place = instrument.folder / "mounted"
    place.mkdir()
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "-r"]
    mount = f"mount -t tmpfs -o ro none {place}"
    tried = subprocess.run([*enter, "sh", "-c", mount], capture_output=True)
    if tried.returncode != 0:
        pytest.skip(f"no mounts here: {tried.stderr.decode().strip()}")
    command = instrument.command(*instrument.bench_arguments(), "--out", str(place))
    done = subprocess.run(
        [*enter, "sh", "-c", f'{mount} && exec "$@"', "sh", *command],
        env=instrument.full_environment(), cwd=instrument.folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"cannot write to {place}: Read-only file system" in line
    assert not instrument.log.exists()


def test_full_disk(instrument: FakeInstrument) -> None:
    """/dev/full takes the place of the results file and answers every write as a full disk does."""
    instrument.out.mkdir()
    (instrument.out / "results.jsonl").symlink_to("/dev/full")
    done = instrument.bench()
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("mobius: error: cannot write")
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Open MPI v5.0.11, package: Open MPI x, ident", ("openmpi", "Open MPI", "5.0.11")),
        ("MPICH Version:      5.0.2\nMPICH ABI: 1", ("mpich", "MPICH", "5.0.2")),
        ("Intel(R) MPI Library 2021.17 for Linux* OS\n", ("intel", "Intel MPI", "2021.17")),
        ("MVAPICH2 Version      :\t2.3.7", ("mpich", "MVAPICH", "2.3.7")),
        ("Some MPI 1", ("other", "Some MPI 1", "")),
    ],
)
def test_library_versions(text: str, expected: tuple[str, str, str]) -> None:
    assert describe_version(text) == expected


def test_launcher_of_the_same_installation(tmp_path: Path) -> None:
    for name in ("mpicc.mpich", "mpiexec.mpich", "mpiexec", "mpicc"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    assert launcher_for(tmp_path / "mpicc.mpich") == tmp_path / "mpiexec.mpich"
    assert launcher_for(tmp_path / "mpicc") == tmp_path / "mpiexec"
    assert launcher_for(tmp_path / "none" / "mpicc") is None


def test_sources_of_the_suite_for_mpi(instrument: FakeInstrument) -> None:
    suite = instrument.folder / "suite"
    assert suite_sources(suite) == [suite / "main.c", suite / "mpi" / "loops.c"]


def test_a_time_budget_ends_within_a_launch(instrument: FakeInstrument) -> None:
    instrument.behave({"*": "slow"})
    first = instrument.bench("--repeats", "1", "--time-budget", "1s")
    assert first.returncode == 0, first.stderr
    assert "the time budget is used up" in first.stdout
    (launch,) = instrument.records("launch")
    assert launch["status"] == "interrupted"
    assert 0 < len(launch["ended"]) < len(CELLS)
    assert f"{len(CELLS) - len(launch['ended'])} cells left" in first.stdout
    instrument.behave({})
    instrument.bench("--repeats", "1")
    _, rest = instrument.records("launch")
    assert [*launch["ended"], *rest["ended"]] == CELLS

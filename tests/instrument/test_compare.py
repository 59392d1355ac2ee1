# SPDX-License-Identifier: BSD-3-Clause
"""`mobius compare`: equal files, real differences, noise, unusable input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from instrument_tools import FakeInstrument, SyntheticRun
from mobius_instrument.compare import Agreement, compare
from mobius_instrument.results import read_results

CELL = "pingpong:put:flush:allocate"
Make = Callable[[str], SyntheticRun]
Times = Callable[[int, int], float]


def one_series(
    synthetic: Make,
    name: str,
    times: Times,
    *,
    launches: int = 5,
    noise: float = 0.01,
    seed: int = 1,
) -> Path:
    run = synthetic(name)
    run.seed = seed
    run.library("mobius", "Möbius 1", "mobius")
    run.series("mobius", CELL, times, launches=launches, noise=noise)
    return run.write()


def base(size: int, _repeat: int) -> float:
    return 100.0 + size / 10


def verdicts(a: Path, b: Path) -> dict[int, str]:
    return {one.bytes: one.verdict for one in compare(read_results(a), read_results(b)).differences}


def test_a_file_beside_itself_has_no_difference(recorded: Path) -> None:
    results = read_results(recorded)
    comparison = compare(results, results)
    assert len(comparison.differences) > 20
    assert {one.verdict for one in comparison.differences} == {"same"}
    assert all(one.ratio == 1 for one in comparison.differences)


def test_same_times_with_other_noise(synthetic: Make) -> None:
    a = one_series(synthetic, "a", base, noise=0.1)
    b = one_series(synthetic, "b", base, noise=0.1, seed=2)
    assert set(verdicts(a, b).values()) == {"same"}


def test_real_differences_at_the_sizes_that_have_them(synthetic: Make) -> None:
    a = one_series(synthetic, "a", base)
    b = one_series(
        synthetic,
        "b",
        lambda size, repeat: base(size, repeat) * {4: 1.5, 8: 0.5, 65536: 1.0}.get(size, 1.02),
    )
    assert verdicts(a, b) == {4: "slower", 8: "faster", 65536: "same", 1048576: "same"}


def test_difference_between_launches_as_large_as_between_files(synthetic: Make) -> None:
    a = one_series(synthetic, "a", lambda size, repeat: base(size, repeat) * (1 + 0.2 * repeat))
    b = one_series(synthetic, "b", lambda size, repeat: base(size, repeat) * (1.1 + 0.2 * repeat))
    assert set(verdicts(a, b).values()) == {"same"}


def test_rank_test_needs_four_launches(synthetic: Make) -> None:
    for launches, tested in ((3, False), (4, True)):
        a = one_series(synthetic, f"a{launches}", base, launches=launches)
        b = one_series(
            synthetic, f"b{launches}", lambda size, r: 2 * base(size, r), launches=launches
        )
        differences = compare(read_results(a), read_results(b)).differences
        assert all((one.rank_p is not None) == tested for one in differences)
        assert {one.verdict for one in differences} == {"slower"}


def test_command_line(synthetic: Make, instrument: FakeInstrument) -> None:
    a = one_series(synthetic, "a", base)
    b = one_series(
        synthetic, "b", lambda size, repeat: base(size, repeat) * (2 if size == 4 else 1)
    )
    done = instrument.run("compare", str(a), str(b.parent))
    assert done.returncode == 0, done.stderr
    assert "4 times compared: 0 faster, 1 slower, 3 without" in done.stdout
    assert "64 KB" not in done.stdout
    assert "64 KB" in instrument.run("compare", "--all", str(a), str(b)).stdout
    parsed = json.loads(instrument.run("compare", "--json", str(a), str(b)).stdout)
    assert [one["verdict"] for one in parsed["differences"]] == ["slower", "same", "same", "same"]


def test_several_runs_and_other_machines(synthetic: Make, instrument: FakeInstrument) -> None:
    a, b, c = (one_series(synthetic, name, base) for name in "abc")
    lines = c.read_text(encoding="utf-8").splitlines(keepends=True)
    run = json.loads(lines[0])
    run["host"]["hostname"] = "elsewhere"
    run["mobius_version"] = "9.9"
    c.write_text(json.dumps(run) + "\n" + "".join(lines[1:]), encoding="utf-8")
    done = instrument.run("compare", str(a), str(b), str(c))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("A is")] == [
        f"A is {a}, B is {b}", f"A is {a}, B is {c}",
    ]  # fmt: skip
    machine, version = done.stderr.splitlines()
    assert "other machines: synthetic, a CPU, 2 CPUs; elsewhere" in machine
    assert version.endswith("other versions: Möbius 0.1.0 and 9.9")
    done = instrument.run("compare", str(a), str(b), str(c), "--json")
    assert len(json.loads(done.stdout)) == 2


def test_unusable_input(synthetic: Make, instrument: FakeInstrument) -> None:
    a = one_series(synthetic, "a", base)
    other = synthetic("other")
    other.library("mpich", "MPICH", "mpi")
    other.series("mpich", CELL, base)
    broken = instrument.folder / "broken.jsonl"
    broken.write_text("x\n")
    for first, second, error in (
        (a, "/nowhere", "no results at /nowhere"),
        (broken, a, "not a results file"),
        (a, other.write(), "no series at the same size in common"),
    ):
        done = instrument.run("compare", str(first), str(second))
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert error in line


def test_ratios_between_libraries_agree(synthetic: Make, instrument: FakeInstrument) -> None:
    """B's machine was twice as slow, and the MPI is really 10 % slower at one of the sizes."""
    runs = []
    for name, factor, other in (("a", 1.0, 200.0), ("b", 2.0, 220.0)):
        run = synthetic(name)
        run.library("mobius", "Möbius 1", "mobius")
        run.library("mpich", "MPICH 5", "mpi")
        for number in range(12):
            run.round(number)
        run.in_rounds("mobius", CELL, 100.0 * factor, sizes=(8, 64))
        run.in_rounds("mpich", CELL, 200.0 * factor, sizes=(8,))
        run.in_rounds("mpich", CELL, other * factor, sizes=(64,))
        runs.append(run.write())
    first, second = (read_results(path) for path in runs)
    assert compare(first, second).agreement == Agreement(2, 1)
    assert compare(first, first).agreement == Agreement(2, 2)
    done = instrument.run("compare", *map(str, runs))
    assert "2 ratios between libraries: 50% differ by less than 5% between A and B" in done.stdout


def test_rounds_of_one_start_are_not_independent(synthetic: Make) -> None:
    """Each start has its luck: what differs between starts is no difference between files."""
    runs = []
    for name, luck in (("a", (1.0, 1.0, 1.3)), ("b", (1.0, 1.3, 1.3))):
        run = synthetic(name)
        run.library("mobius", "Möbius 1", "mobius")
        for number in range(12):
            run.round(number, start=number // 4 * 4)
        run.in_rounds("mobius", CELL, 100.0, luck=luck)
        runs.append(run.write())
    assert set(verdicts(*runs).values()) == {"same"}

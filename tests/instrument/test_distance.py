# SPDX-License-Identifier: BSD-3-Clause
"""CPUs that are nearer to each other, or further, in some launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from instrument_tools import SyntheticRun
from mobius_instrument.cells import Cell
from mobius_instrument.machine.distance import Band, Distance, Ways, usual_band
from mobius_instrument.presentation.analysis import Analysis
from mobius_instrument.presentation.findings import find
from mobius_instrument.presentation.page import _doubts
from mobius_instrument.results import read_results

Make = Callable[[str], SyntheticRun]
PUT = "pingpong:put:flush:allocate"


def _two_libraries(run: SyntheticRun, mobius_far: tuple[int, ...]) -> Analysis:
    """Both as fast as each other; launches of Möbius in `mobius_far` had CPUs far apart."""
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("mpich", "MPICH 5")
    run.series("mobius", PUT, lambda _, repeat: 500.0 if repeat in mobius_far else 100.0)
    run.series("mpich", PUT, lambda *_: 100.0)
    for repeat in range(3):
        way = 490.0 if repeat in mobius_far else 105.0
        run.launch("mobius", repeat=repeat, ended=[PUT], line_ns=[104.0, way])
        run.launch("mpich", repeat=repeat, ended=[PUT], line_ns=[103.0, 110.0])
    return Analysis(read_results(run.write()))


def test_only_launches_at_the_usual_distance_count(synthetic: Make) -> None:
    analysis = _two_libraries(synthetic("some"), (0, 2))
    (mobius,) = analysis.of("pingpong", library="mobius")
    assert mobius.summaries[8].launches == 1
    assert mobius.summaries[8].median == pytest.approx(100, rel=0.05)
    assert {finding.verdict for finding in find(analysis)} == {"same"}
    assert not any("from one CPU to the other" in doubt for doubt in _doubts(analysis))


def test_series_at_unusual_distances_are_named_and_not_compared(synthetic: Make) -> None:
    analysis = _two_libraries(synthetic("all"), (0, 1, 2))
    (mobius,) = analysis.of("pingpong", library="mobius")
    assert mobius.summaries[8].launches == 3
    assert analysis.results.is_unusual(mobius.key, 8)
    assert find(analysis) == []
    (doubt,) = (doubt for doubt in _doubts(analysis) if "from one CPU to the other" in doubt)
    assert "Möbius 0.1.0: pingpong." in doubt
    assert "103 ns" in doubt
    assert "103 to 154 ns" in doubt
    assert "490 ns" in doubt


@pytest.mark.parametrize(
    ("launches", "shortest"),
    [
        ([], None),
        ([(490, 490)], 490),
        ([(100, 104), (490, 490), (490, 500)], 100),  # a third
        ([(100, 104), (490, 490), (490, 500), (480, 500)], 480),
        # As found: three distances, and launches during which they changed.
        ([(54, 107), (54, 105), (54, 54)] + 5 * [(107, 112)] + 4 * [(490, 510)], 107),
        ([(54, 107), (107, 490)], 54),  # none stayed
        ([(75, 108), (107, 110), (106, 111), (105, 120), (107, 119)], 105),  # begun on the way
    ],
)
def test_the_usual_distance(launches: list[tuple[float, float]], shortest: float | None) -> None:
    band = usual_band([Ways(*ways) for ways in launches])
    assert band == (None if shortest is None else Band(shortest, 1.5 * shortest))


def test_nearer_ones_are_unusual_too(synthetic: Make) -> None:
    run = synthetic("nearer")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("mpich", "MPICH 5")
    run.series("mobius", PUT, lambda *_: 50.0)
    run.series("mpich", PUT, lambda *_: 100.0)
    for repeat in range(3):
        run.launch("mobius", repeat=repeat, ended=[PUT], line_ns=[54.0, 55.0 + 53 * (repeat > 0)])
        run.launch("mpich", repeat=repeat, ended=[PUT], line_ns=[107.0, 110.0])
    analysis = Analysis(read_results(run.write()))
    assert find(analysis) == []
    (doubt,) = (doubt for doubt in _doubts(analysis) if "from one CPU to the other" in doubt)
    assert "107 to 160 ns" in doubt


def test_a_launch_that_was_made_again_is_usual(synthetic: Make) -> None:
    run = synthetic("again")
    run.library("mpich", "MPICH 5")
    run.series("mpich", PUT, lambda *_: 100.0, launches=1)
    run.launch("mpich", repeat=0, ended=[PUT], line_ns=[490.0, 490.0])
    run.launch("mpich", repeat=0, ended=[PUT], line_ns=[100.0, 101.0])
    results = read_results(run.write())
    assert not results.is_unusual(("mpich", Cell.parse(PUT)), 8)


@pytest.mark.parametrize("told", [None, [None, None], [None, 100.0], "near", [1, 2, 3], [0, -1]])
def test_launches_that_do_not_tell_are_as_before(synthetic: Make, told: object) -> None:
    run = synthetic("silent")
    run.library("mpich", "MPICH 5")
    run.series("mpich", PUT, lambda *_: 100.0)
    run.launch("mpich", ended=[PUT], line_ns=told)
    results = read_results(run.write())
    assert results.unusual == set()
    assert len(results.one_way(("mpich", Cell.parse(PUT)), 8)) == 3


def test_without_the_program_or_a_second_cpu_nothing_is_known(tmp_path: Path) -> None:
    program = tmp_path / "suite_limits"
    assert Distance(None, [0, 1]).measure() is None
    assert Distance(program, [0]).measure() is None
    assert Distance(program, [0, 1]).measure() is None
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert Distance(program, [0, 1]).measure() is None

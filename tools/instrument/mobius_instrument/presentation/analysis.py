# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of every series of a results file, and choices that texts and plots share."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Final

from mobius_instrument.cells import PAPER1_EXPERIMENTS, Cell
from mobius_instrument.errors import InstrumentError
from mobius_instrument.results import Outcome, Results, SeriesKey
from mobius_instrument.stats import (
    Floats,
    Ratio,
    Summary,
    ratio_of_medians,
    ratio_within_rounds,
    summarise,
)
from mobius_instrument.turns.board import FIRST_ROUND

# The fewest common rounds that a ratio is computed from.
_FEWEST_ROUNDS: Final = 3


@dataclass(frozen=True)
class Series:
    """One cell of one library over its sizes, in one-way (pingpong) or whole (completion) times."""

    library: str
    cell: Cell
    summaries: dict[int, Summary]

    @property
    def key(self) -> SeriesKey:
        """The key of its samples in the results."""
        return self.library, self.cell

    def geometric_mean(self, sizes: set[int]) -> float:
        """The geometric mean of the medians at these sizes."""
        logs = [math.log(max(self.summaries[size].median, 1e-3)) for size in sizes]
        return math.exp(sum(logs) / len(logs)) if logs else math.inf


class Analysis:
    """All series of a results file."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.series: list[Series] = [
            Series(
                key[0],
                key[1],
                {size: _summary(results, key, size) for size in sorted(results.samples[key])},
            )
            for key in sorted(results.samples, key=self._place)
        ]
        if not self.series:
            raise InstrumentError(
                f"{results.path} has no samples yet; run `mobius bench --out"
                f" {results.path.parent}` to measure some"
            )
        # Chapters ask for some of a thousand series a thousand times.
        self._by_key = {series.key: series for series in self.series}
        self._of_experiment: dict[str, list[Series]] = {}
        for series in self.series:
            self._of_experiment.setdefault(series.cell.experiment, []).append(series)

    def _place(self, key: SeriesKey) -> tuple[int, Cell]:
        names = list(self.results.libraries)
        return (names.index(key[0]) if key[0] in names else len(names)), key[1]

    @property
    def libraries(self) -> list[str]:
        """The libraries with samples, in the order of the run."""
        return list(dict.fromkeys(series.library for series in self.series))

    @property
    def sizes(self) -> list[int]:
        """All sizes of the series of paper 1's experiments."""
        return sorted(
            {
                size
                for series in self.series
                if series.cell.experiment in PAPER1_EXPERIMENTS
                for size in series.summaries
            }
        )

    def of(
        self, experiment: str, operation: str | None = None, library: str | None = None
    ) -> list[Series]:
        """The series of an experiment, filtered by the arguments."""
        return [
            series
            for series in self._of_experiment.get(experiment, ())
            if operation in (None, series.cell.operation) and library in (None, series.library)
        ]

    def one(self, library: str, cell: Cell) -> Series | None:
        """The series of a cell, if it was measured."""
        return self._by_key.get((library, cell))

    def best(self, experiment: str, operation: str, library: str) -> Series | None:
        """The synchronisation and memory with the smallest geometric mean of the medians, over the
        sizes that the most complete series share."""
        found = self.of(experiment, operation, library)
        if not found:
            return None
        most = max(len(series.summaries) for series in found)
        complete = [series for series in found if len(series.summaries) == most]
        common = set.intersection(*(set(series.summaries) for series in complete))
        return min(complete, key=lambda series: series.geometric_mean(common))

    def ratio(
        self, numerator: Series, denominator: Series, size: int, paired: bool = False
    ) -> Ratio:
        """The ratio of two medians at one size; paired if both are from the same launches or
        rounds."""
        results = self.results
        above, below = (results.by_repeat(one.key, size) for one in (numerator, denominator))
        common = _common_rounds(above, below)
        if len(common) >= _FEWEST_ROUNDS:
            return ratio_within_rounds(
                [above[number] for number in common],
                [below[number] for number in common],
                _seed(results, numerator.key, size),
                [results.start_of(number) for number in common],
            )
        return ratio_of_medians(
            results.one_way(numerator.key, size),
            results.one_way(denominator.key, size),
            _seed(results, numerator.key, size),
            paired,
        )

    def in_turns(self, series: Series) -> bool:
        """Whether a series was measured in turns with others."""
        sizes = self.results.samples[series.key].values()
        return any(number >= FIRST_ROUND for repeats in sizes for number in repeats)

    def comparable(self, one: Series, other: Series, size: int) -> bool:
        """Whether both were measured in the same rounds or, if in launches of their own, with their
        CPUs at the usual distance (`distance`)."""
        results = self.results
        repeats = [results.by_repeat(series.key, size) for series in (one, other)]
        if any(number >= FIRST_ROUND for found in repeats for number in found):
            return len(_common_rounds(*repeats)) >= _FEWEST_ROUNDS
        return not any(results.is_unusual(series.key, size) for series in (one, other))

    def outcomes(self) -> dict[tuple[str, Cell], list[Outcome]]:
        """Failures by library and cell."""
        found: dict[tuple[str, Cell], list[Outcome]] = {}
        for outcome in self.results.outcomes:
            found.setdefault((outcome.library, outcome.cell), []).append(outcome)
        return found


def _summary(results: Results, key: SeriesKey, size: int) -> Summary:
    launches = results.by_repeat(key, size)
    starts = [results.start_of(number) for number in launches]
    return summarise(list(launches.values()), _seed(results, key, size), starts)


def _common_rounds(one: dict[int, Floats], other: dict[int, Floats]) -> list[int]:
    """The rounds in which both were measured."""
    return sorted(number for number in one if number >= FIRST_ROUND and number in other)


def _seed(results: Results, key: SeriesKey, size: int) -> int:
    """A seed that differs between series and is the same in every rendering."""
    return zlib.crc32(f"{results.seed}|{key[0]}|{key[1]}|{size}".encode())

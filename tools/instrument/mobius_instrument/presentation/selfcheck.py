# SPDX-License-Identifier: BSD-3-Clause
"""The instrument against itself: measurements whose true ratio is known."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Final

from mobius_instrument.cells import Cell
from mobius_instrument.compare import THRESHOLD
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.stats import Ratio

# Equal programs may differ by less than this, in this share of the times.
CLOSE: Final = 0.02
MOST: Final = 0.95


@dataclass(frozen=True)
class Pair:
    """Two measurements whose true ratio is known."""

    library: str
    cell: Cell
    size: int
    true: float
    ratio: Ratio

    @property
    def off(self) -> float:
        """How far the found ratio is from the true one."""
        return abs(self.ratio.value / self.true - 1)


def _part(analysis: Analysis, one: Series, name: str) -> Series | None:
    base = one.cell.without("part", "run", "slower")
    if name == "again":
        return analysis.one(one.library, replace(base, options=(("run", "again"),)))
    return analysis.one(one.library, one.cell.without("part").part(name))


def _pairs(analysis: Analysis, name: str) -> list[Pair]:
    return [
        Pair(one.library, one.cell, size, 1.0, analysis.ratio(other, one, size))
        for one in analysis.of("trust")
        if one.cell.option("part") == "first" and (other := _part(analysis, one, name))
        for size in one.summaries
        if size in other.summaries and analysis.comparable(one, other, size)
    ]


def twice(analysis: Analysis) -> list[Pair]:
    """The same program in two turns of each round."""
    return _pairs(analysis, "second")


def started_twice(analysis: Analysis) -> list[Pair]:
    """The same library in two programs: their memory lies at other places."""
    return _pairs(analysis, "again")


def slower(analysis: Analysis) -> list[Pair]:
    """A program beside itself with some more repetitions than are counted."""
    known = {
        (fact.library, fact.cell, int(fact.detail)): fact.number
        for fact in analysis.results.facts
        if fact.name == "slower"
    }
    return [
        replace(pair, true=true)
        for pair in _pairs(analysis, "slower")
        if (true := known.get((pair.library, pair.cell.without("part"), pair.size)))
    ]


def close(pairs: list[Pair]) -> int:
    """How many are as close to the true ratio as they must be."""
    return sum(pair.off < CLOSE for pair in pairs)


def is_found(pair: Pair) -> bool:
    """Whether a difference was told from none."""
    return pair.ratio.low > 1


def floor_of(again: list[Pair]) -> float:
    """The difference between starts of the same that only few times exceed."""
    offs = sorted(pair.off for pair in again)
    return offs[min(int(MOST * len(offs)), len(offs) - 1)] if offs else 0.0


# What an instrument may be wrong by, if a library is as fast as the machine.
_MARGIN: Final = 0.15
# The limit of each experiment of paper 1, for operations that move the bytes in that way.
_LIMITS: Final = {
    "pingpong": Cell.parse("pingpong:line:none:local"),
    "completion": Cell.parse("completion:copy:none:local"),
}
# Small puts and gets are single instructions, which overlap: no copy is their limit.
_LEAST_BYTES: Final = 4096


def impossible(analysis: Analysis) -> list[Pair]:
    """Times that are certainly shorter than the limit that was measured in the same rounds: errors
    of the instrument."""
    found = []
    for experiment, cell in _LIMITS.items():
        limit = analysis.one("limits", cell)
        if limit is None:
            continue
        for one in analysis.of(experiment):
            if analysis.results.kind(one.library) == "limit":
                continue
            for size in one.summaries.keys() & limit.summaries.keys():
                if experiment == "completion" and size < _LEAST_BYTES:
                    continue
                if not analysis.comparable(one, limit, size):
                    continue
                ratio = analysis.ratio(one, limit, size)
                if ratio.high < 1 - _MARGIN:
                    found.append(Pair(one.library, one.cell, size, 1.0, ratio))
    return sorted(found, key=lambda pair: pair.ratio.value)


@functools.lru_cache(maxsize=4)
def threshold(analysis: Analysis) -> float:
    """The smallest difference between libraries that is told."""
    return max(THRESHOLD, floor_of(started_twice(analysis)))

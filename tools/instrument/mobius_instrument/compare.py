# SPDX-License-Identifier: BSD-3-Clause
"""Finds the differences between two results files that are real, and whether both say the same of
libraries beside each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from mobius_instrument.cells import Cell
from mobius_instrument.results import Results, SeriesKey
from mobius_instrument.stats import Floats, ratio_of_medians

THRESHOLD: Final = 0.03
_SIGNIFICANCE: Final = 0.05
# With fewer launches no order of the medians is improbable enough: 4 + 4 can reach 0.03, 3 + 3 only
# 0.1.
_LAUNCHES_FOR_RANKS: Final = 4
# Ratios that differ by less are the same.
CLOSE: Final = 0.05
_FEWEST_ROUNDS: Final = 3


@dataclass(frozen=True)
class Difference:
    """One series at one size in both files; times are one-way (pingpong) or whole (completion).

    `rank_p` is null if there are too few launches for the rank test; then the interval decides.
    """

    library: str
    label: str
    cell: str
    bytes: int
    a_ns: float
    b_ns: float
    ratio: float
    low: float
    high: float
    rank_p: float | None
    real: bool

    @property
    def verdict(self) -> str:
        """The verdict on B compared with A: same, slower or faster."""
        if not self.real:
            return "same"
        return "slower" if self.ratio > 1 else "faster"


@dataclass(frozen=True)
class Agreement:
    """The times of libraries over those of one of them, in turns: what two reports tell their
    readers. `close` of `ratios` differ by less than CLOSE between the two files."""

    ratios: int
    close: int


@dataclass(frozen=True)
class Comparison:
    """`only_a`, `only_b`: names of the series (library, cell) that the other file does not have."""

    differences: list[Difference]
    only_a: list[str]
    only_b: list[str]
    agreement: Agreement

    def to_json(self) -> dict[str, Any]:
        """The JSON of `compare --json`."""
        return {
            "differences": [{**asdict(one), "verdict": one.verdict} for one in self.differences],
            "only_a": self.only_a,
            "only_b": self.only_b,
            "agreement": asdict(self.agreement),
        }


def _rank_p(first: list[Floats], second: list[Floats]) -> float | None:
    if min(len(first), len(second)) < _LAUNCHES_FOR_RANKS:
        return None
    # Imported here because it takes longer than all other imports, and every report imports this
    # module.
    from scipy.stats import mannwhitneyu

    medians = [[float(np.median(launch)) for launch in launches] for launches in (first, second)]
    return float(mannwhitneyu(*medians, alternative="two-sided").pvalue)


def _points(results: Results) -> set[tuple[SeriesKey, int]]:
    return {(key, size) for key, sizes in results.samples.items() for size in sizes}


def _difference(a: Results, b: Results, key: SeriesKey, size_bytes: int) -> Difference:
    first, second = a.by_start(key, size_bytes), b.by_start(key, size_bytes)
    ratio = ratio_of_medians(second, first, a.seed)
    rank_p = _rank_p(first, second)
    return Difference(
        library=key[0],
        label=b.label(key[0]),
        cell=str(key[1]),
        bytes=size_bytes,
        a_ns=float(np.median(np.concatenate(first))),
        b_ns=float(np.median(np.concatenate(second))),
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        rank_p=rank_p,
        real=ratio.is_real(THRESHOLD) and (rank_p is None or rank_p < _SIGNIFICANCE),
    )


def caveats(a: Results, b: Results) -> list[str]:
    """Reasons why differences between two files may come from the machine."""
    found = []
    place = ("hostname", "cpu", "cores")
    if any(a.host.get(name) != b.host.get(name) for name in place):
        one, other = (
            ", ".join(str(results.host.get(name, "?")) for name in place) + " CPUs"
            for results in (a, b)
        )
        found.append(f"other machines: {one}; {other}: what differs may be the machine")
    elif a.host.get("kernel") != b.host.get("kernel"):
        found.append(
            f"other kernels: {a.host.get('kernel')} and {b.host.get('kernel')}:"
            " what differs may be the system"
        )
    versions = [str(results.run.get("mobius_version") or "") for results in (a, b)]
    if all(versions) and versions[0] != versions[1]:
        found.append(f"other versions: Möbius {versions[0]} and {versions[1]}")
    return found


def _ratios(results: Results) -> dict[tuple[SeriesKey, int], float]:
    """The times of each library over those of Möbius, or of the first one, in the same rounds."""
    names = [name for name in results.libraries if results.kind(name) != "limit"]
    base = next((name for name in names if name == "mobius"), names[0] if names else "")
    found = {}
    for (library, cell), sizes in results.samples.items():
        if library not in names or library == base or (base, cell) not in results.samples:
            continue
        for size in sizes.keys() & results.samples[base, cell].keys():
            above = results.by_repeat((library, cell), size)
            below = results.by_repeat((base, cell), size)
            rounds = [one for one in above if one in below and one in results.rounds]
            if len(rounds) >= _FEWEST_ROUNDS:
                each = [np.median(above[one]) / max(np.median(below[one]), 1e-9) for one in rounds]
                found[(library, cell), size] = float(np.median(each))
    return found


def _agreement(a: Results, b: Results) -> Agreement:
    first, second = _ratios(a), _ratios(b)
    common = first.keys() & second.keys()
    close = sum(abs(second[point] / max(first[point], 1e-9) - 1) < CLOSE for point in common)
    return Agreement(len(common), close)


def compare(a: Results, b: Results) -> Comparison:
    """Compares B with A, in the order of libraries and cells."""
    points_a, points_b = _points(a), _points(b)
    order = {name: number for number, name in enumerate([*b.libraries, *a.libraries])}

    def place(point: tuple[SeriesKey, int]) -> tuple[int, str, Cell, int]:
        (library, cell), size_bytes = point
        return order.get(library, len(order)), library, cell, size_bytes

    def alone(mine: Results, others: Results) -> list[str]:
        return [
            f"{mine.label(library)} {cell}"
            for library, cell in sorted(set(mine.samples) - set(others.samples))
        ]

    return Comparison(
        differences=[
            _difference(a, b, key, size) for key, size in sorted(points_a & points_b, key=place)
        ],
        only_a=alone(a, b),
        only_b=alone(b, a),
        agreement=_agreement(a, b),
    )

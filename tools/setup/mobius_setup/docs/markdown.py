# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and tables as the pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

NONE: Final = "–"


def time_text(ns: float) -> str:
    """A time with three digits at most and its unit."""
    scales = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
    unit, size = next((one for one in scales if ns / one[1] < 999.5), scales[-1])
    value = ns / size
    digits = 0 if value >= 99.5 or (unit == "ns" and value >= 9.95) else 1 if value >= 9.95 else 2
    return f"{value:.{digits}f} {unit}"


def ratio_text(ratio: float) -> str:
    """A ratio with two or three digits."""
    return f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"


def count_text(value: float) -> str:
    """A number with commas."""
    return f"{value:,.0f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], source: str) -> str:
    """A table, and below it the line that says where its figures are from."""
    lines = [head, ["---"] * len(head), *rows]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{text}\n{source}\n"

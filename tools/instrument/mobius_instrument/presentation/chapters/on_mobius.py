# SPDX-License-Identifier: BSD-3-Clause
"""What an MPI program gains or loses by `mobius mpirun`: each MPI beside itself with its windows on
Möbius, in every cell that both were measured in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from mobius_instrument.cells import (
    Cell,
    format_bytes,
    format_ns,
    format_ratio,
    memory_words,
)
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    Book,
    Chapter,
    details,
    listing,
    note,
    paragraph,
)
from mobius_instrument.presentation.selfcheck import threshold
from mobius_instrument.stats import Ratio

# As in libraries/base.py, repeated here because reports use results only.
_ON_MOBIUS = "+mobius"
_SMALL = 8
_SHOWN_SLOWER = 3


@dataclass(frozen=True)
class _Pair:
    """A cell and size that both have; `ratio` is the MPI's own time over that with the front."""

    cell: Cell
    size: int
    own_ns: float
    fronted_ns: float
    ratio: Ratio


def _has_window(cell: Cell) -> bool:
    return cell.operation not in ("sendrecv", "copy", "line", "call") and cell.sync != "none"


def _pairs(book: Book, own: str, fronted: str) -> list[_Pair]:
    analysis = book.analysis
    found = []
    for series in analysis.series:
        if series.library != fronted or not _has_window(series.cell):
            continue
        other = analysis.one(own, series.cell)
        if other is None:
            continue
        found += [
            _pair(book, other, series, size)
            for size in sorted(series.summaries.keys() & other.summaries.keys())
            if analysis.comparable(series, other, size)
        ]
    return found


def _pair(book: Book, own: Series, fronted: Series, size: int) -> _Pair:
    return _Pair(
        fronted.cell, size, own.summaries[size].median, fronted.summaries[size].median,
        book.analysis.ratio(own, fronted, size),
    )  # fmt: skip


def _mean(pairs: list[_Pair]) -> float:
    return math.exp(sum(math.log(max(pair.ratio.value, 1e-6)) for pair in pairs) / len(pairs))


def _in_words(pair: _Pair) -> str:
    cell = pair.cell
    locality = f", K = {cell.option('k')}" if cell.option("k") else ""
    return (
        f"{cell.experiment} {cell.operation} of {format_bytes(pair.size)} ({cell.sync},"
        f" {memory_words(cell.memory)}{locality})"
    )


def _example(pairs: list[_Pair]) -> str:
    """A small put and its completion: what a program does most."""
    for memory in ("allocate", "create"):
        for pair in pairs:
            cell = pair.cell
            if (cell.experiment, cell.operation, cell.sync, cell.memory, pair.size) == (
                "completion", "put", "flush", memory, _SMALL,
            ):  # fmt: skip
                return (
                    f" A put of {format_bytes(_SMALL)} with its flush takes"
                    f" {format_ns(pair.fronted_ns)} instead of {format_ns(pair.own_ns)}."
                )
    return ""


def _sentence(book: Book, own: str, pairs: list[_Pair]) -> str:
    real = [pair for pair in pairs if pair.ratio.is_real(threshold(book.analysis))]
    faster = [pair for pair in real if pair.ratio.value > 1]
    slower = sorted((pair for pair in real if pair.ratio.value < 1), key=lambda p: p.ratio.value)
    text = (
        f"Started with mobius mpirun, one-sided communication of {book.label(own)} is faster in"
        f" {len(faster)} of {len(pairs)} cells and sizes and slower in {len(slower)}; on average it"
        f" takes {format_ratio(1 / _mean(pairs))} times as long as without.{_example(pairs)}"
    )
    if slower:
        worst = [f"{_in_words(p)}, {format_ratio(1 / p.ratio.value)} times as long"
                 for p in slower[:_SHOWN_SLOWER]]  # fmt: skip
        text += f" Slowest beside the MPI itself: {listing(worst)}."
    return text


def _table(pairs: list[_Pair], least: float) -> str:
    """By experiment, operation, synchronisation and memory: the mean over all sizes and options."""
    groups: dict[tuple[str, str, str, str], list[_Pair]] = {}
    for pair in pairs:
        cell = pair.cell
        groups.setdefault((cell.experiment, cell.operation, cell.sync, cell.memory), []).append(
            pair
        )
    rows = []
    for (experiment, operation, sync, memory), group in groups.items():
        smallest, worst = min(group, key=lambda p: p.size), min(group, key=lambda p: p.ratio.value)
        best = max(group, key=lambda p: p.ratio.value)
        ratios = (_mean(group), worst.ratio.value, best.ratio.value)
        rows.append(
            [
                escape(experiment), escape(operation), escape(sync), escape(memory_words(memory)),
                tables.number(str(len(group)), len(group)),
                *(_ratio(one, least) for one in ratios),
                tables.number(format_ns(smallest.own_ns), smallest.own_ns),
                tables.number(format_ns(smallest.fronted_ns), smallest.fronted_ns),
            ]
        )  # fmt: skip
    head = [
        "experiment", "operation", "synchronisation", "memory", "sizes", "mean", "least", "most",
        "smallest size: MPI", "on Möbius",
    ]  # fmt: skip
    return tables.table(head, rows, 4, sortable=True)


def _ratio(value: float, least: float) -> str:
    kind = " faster" if value > 1 + least else " slower" if value < 1 - least else " mixed"
    return tables.number(f"{format_ratio(value)} ×", value, kind)


def chapter(book: Book) -> Chapter | None:
    """The chapter, if an MPI was measured with and without the front."""
    parts, sentences = [], []
    least = threshold(book.analysis)
    for fronted in book.analysis.libraries:
        base, mark, hosts = fronted.partition(_ON_MOBIUS)
        pairs = _pairs(book, base + hosts, fronted) if mark else []
        if not pairs:
            continue
        sentences.append(_sentence(book, base + hosts, pairs))
        parts.append(
            details(
                f"{book.label(base + hosts)}: {len(pairs)} cells and sizes", _table(pairs, least)
            )
        )
    if not parts:
        return None
    text = paragraph(
        "The same program and the same MPI, started by its launcher and by mobius mpirun with that"
        " launcher. Ratios are how many times faster it is with the front; below 1 it is slower."
    )
    tail = note(
        "Cells without windows (send/receive) are the MPI's own in both and are left out."
        " Experiments: all but the applications. A ratio counts as faster or slower from"
        f" {100 * least:.0f} % on."
    )
    return Chapter(
        "on-mobius", "MPI programs on Möbius", text + "".join(parts) + tail, tuple(sentences)
    )

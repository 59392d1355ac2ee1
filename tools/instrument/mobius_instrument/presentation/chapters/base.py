# SPDX-License-Identifier: BSD-3-Clause
"""Parts of chapters: series by library and cell, medians, tables and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from mobius_instrument.cells import Cell, format_ns, format_ratio
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.charts import Axis, Charts, Curve
from mobius_instrument.presentation.colours import Look
from mobius_instrument.presentation.findings import short_label
from mobius_instrument.results import Fact
from mobius_instrument.stats import Ratio, Summary

SIZE_AXIS = Axis("bytes", "bytes")
TIME_AXIS = Axis("time", "ns")


@dataclass(frozen=True)
class Chapter:
    """`sentences` are for the first page, the most important first."""

    identifier: str
    title: str
    html: str
    sentences: tuple[str, ...] = ()


@dataclass
class Book:
    """The results as chapters use them."""

    analysis: Analysis
    looks: dict[str, Look]
    charts: Charts
    facts: dict[tuple[str, Cell], list[Fact]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fact in self.analysis.results.facts:
            self.facts.setdefault((fact.library, fact.cell), []).append(fact)

    def of(self, experiment: str, operation: str | None = None) -> list[Series]:
        """The series of an experiment."""
        return self.analysis.of(experiment, operation)

    def sockets(self, in_a_row: bool = False) -> list[Series]:
        """What was measured over plain sockets beside libraries: single transfers there and 8 bytes
        back, or many in a row."""
        found = [one for one in self.of("socket") if one.summaries]
        return [one for one in found if bool(one.cell.option("depth")) == in_a_row]

    def libraries(self, experiment: str) -> list[str]:
        """Libraries with times or facts of an experiment, in the order of the run."""
        found = {series.library for series in self.of(experiment)}
        found |= {library for library, cell in self.facts if cell.experiment == experiment}
        return [name for name in self.analysis.results.libraries if name in found]

    def label(self, library: str) -> str:
        """The library's name, with its origin if two have the same name."""
        return short_label(self.analysis, library)

    def head(self, library: str) -> str:
        """The library's name as a table heading, with its colour."""
        return tables.dot(self.looks.get(library)) + escape(self.label(library))

    def summary(self, library: str, cell: Cell, size: int) -> Summary | None:
        """The statistics of a cell at a size, if measured."""
        for series in self.of(cell.experiment, cell.operation):
            if series.library == library and series.cell == cell:
                return series.summaries.get(size)
        return None

    def median(self, library: str, text: str, size: int) -> float | None:
        """The median of a cell, in nanoseconds."""
        summary = self.summary(library, Cell.parse(text), size)
        return summary.median if summary else None

    def comparable(self, one: tuple[str, Cell], other: tuple[str, Cell], size: int) -> bool:
        """Whether a sentence may compare the times of two cells (library and cell) at a size."""
        first, second = self.analysis.one(*one), self.analysis.one(*other)
        if first is None or second is None:
            return False
        return self.analysis.comparable(first, second, size)

    def is_mobius(self, library: str) -> bool:
        """Whether the library is this project's."""
        return self.analysis.results.kind(library) == "mobius"


def note(text: str) -> str:
    """A remark under a table."""
    return f'<p class="note">{escape(text)}</p>'


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def figures(*parts: str) -> str:
    """Charts side by side."""
    shown = [part for part in parts if part]
    return f'<div class="figures">{"".join(shown)}</div>' if shown else ""


def details(title: str, content: str, opened: bool = False) -> str:
    """Foldable content."""
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(title)}</summary>{content}</details>"


# Longer tables are folded below their plots.
_MOST_ROWS = 14


def numbers(table: str, title: str = "") -> str:
    """A table, folded if it is long; the title says of what."""
    if table.count("<tr") > _MOST_ROWS + 1:
        return details(f"{title}: all numbers" if title else "All numbers", table)
    return (f"<h4>{escape(title)}</h4>" if title else "") + table


def time_cell(value: float | None, best: float | None = None) -> str:
    """A time in a table; the best one of a row is bold."""
    if value is None:
        return '<td class="n none">–</td>'
    strong = " strong" if best is not None and value <= best * 1.0001 else ""
    return tables.number(format_ns(value), value, strong)


def ratio_cell(value: float | None) -> str:
    """A ratio in a table."""
    if value is None:
        return '<td class="n none">–</td>'
    return tables.number(format_ratio(value), value)


def format_interval(ratio: Ratio) -> str:
    """A ratio and its 95 % interval."""
    return f"{format_ratio(ratio.value)} ({format_ratio(ratio.low)} to {format_ratio(ratio.high)})"


def curve(
    book: Book,
    series: Series,
    name: str,
    style: int = 0,
    of: Callable[[int, float], float] = lambda _size, ns: ns,
) -> Curve:
    """Medians and intervals over sizes."""
    points = []
    for size, s in series.summaries.items():
        low, high = sorted((of(size, s.low), of(size, s.high)))
        points.append((size, of(size, s.median), low, high))
    return Curve(name, series.library, points, style, book.is_mobius(series.library))


# Of no library, so in a colour of its own.
SOCKET_NAME = "plain socket"


def socket_curves(
    book: Book, in_a_row: bool, of: Callable[[int, float], float] = lambda _size, ns: ns
) -> list[Curve]:
    """Curves of plain sockets, drawn beside the libraries'."""
    return [
        replace(curve(book, one, SOCKET_NAME, of=of), library="", strong=False)
        for one in book.sockets(in_a_row)
    ]


def shape(cell: Cell, *hide: str) -> str:
    """Options of a cell in words: "vector, blocks of 8 B, packed by hand"."""
    words = []
    for key, value in cell.options:
        if key in hide:
            continue
        words.append(
            {
                "type": value,
                "block": f"blocks of {value} B",
                "stride": f"stride {value} B",
                "pack": "packed by hand",
                "partner": {"pairs": "pairs", "ring": "ring"}.get(value, value),
                "procs": f"{value} processes",
                "dir": {"one": "one way", "two": "both ways"}.get(value, value),
                "comm": value,
                "n": f"{value} transfers",
                "side": f"{value} computes",
                "touch": "touched",
                "word": {"one": "one word", "own": "own words"}.get(value, value),
            }.get(key, f"{key} {value}")
        )
    return ", ".join(words)


def listing(items: Iterable[str]) -> str:
    """ "a, b and c"."""
    words: Sequence[str] = list(items)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"

# SPDX-License-Identifier: BSD-3-Clause
"""The scheduler's goals (docs/scheduler.md), and whether a run met them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Final

from mobius_instrument.cells import Cell, format_bytes, format_ratio
from mobius_instrument.experiments import POLICIES, SOCKET
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.chapters.base import Book, ratio_cell
from mobius_instrument.stats import Ratio

ADAPTIVE, FIFO = POLICIES[:2]
# The largest ratio of adaptive's time to that of the best fixed policy.
MOST_OF_ADAPTIVE: Final = 1.05
_SYNCS: Final = ("flush", "fence", "one-fence", "pscw", "lockx")
_SCATTERED: Final = [
    Cell.parse(f"schedule:put:{sync}:allocate:what=scattered") for sync in ("flush", "one-fence")
]
# From here on n calls are little beside what the buffer takes, also where a link is as fast as
# memory.
_LARGE_BUFFER: Final = 1 << 20
_MOST: Final = 1 << 62
_WORD_BYTES: Final = 8
# A thousand puts of 8 bytes.
_SCATTERED_BYTES: Final = 8_000

# A cell without policy, and the size.
Row = tuple[Cell, int]


def words(cell: Cell) -> str:
    """The synchronisation of a row, and the number of pieces."""
    return f"{cell.sync}, n = {cell.option('n')}" if cell.option("n") else cell.sync


def bare(series: Series) -> Cell:
    """The cell, whatever the policy."""
    return series.cell.without("policy")


class Medians:
    """Times by cell without policy, size and column (a library and a policy)."""

    def __init__(self, analysis: Analysis, series: list[Series]) -> None:
        self.analysis = analysis
        self.found = {
            (bare(one), size, one.library, one.cell.option("policy")): one
            for one in series
            for size in one.summaries
        }

    def rows(self, cells: list[Cell]) -> list[Row]:
        """The measured ones of these cells, in order."""
        sizes = {(cell, size) for cell, size, _, _ in self.found if cell in cells}
        return sorted(sizes, key=lambda row: (cells.index(row[0]), row[1]))

    def cells(self, what: str) -> list[Cell]:
        """All cells of an experiment, by number of pieces."""
        found = {cell for cell, _, _, _ in self.found if cell.option("what") == what}
        return sorted(found, key=lambda cell: (int(cell.option("n") or 0), str(cell)))

    def of(self, row: Row, column: tuple[str, str]) -> float | None:
        """A median, in nanoseconds."""
        one = self.found.get((*row, *column))
        return one.summaries[row[1]].median if one is not None else None

    def launches(self, row: Row, mobius: str) -> int:
        """The fewest launches of Möbius' policies there: with one launch, an interval does not
        include differences between launches."""
        return min(
            one.summaries[row[1]].launches
            for (cell, size, library, _), one in self.found.items()
            if (cell, size, library) == (*row, mobius)
        )

    def between(
        self, row: Row, column: tuple[str, str], base: tuple[str, str], base_row: Row | None = None
    ) -> Ratio | None:
        """The ratio of two columns; in different rows if `base_row` is given."""
        other = base_row or row
        above, below = self.found.get((*row, *column)), self.found.get((*other, *base))
        if above is None or below is None:
            return None
        if other[1] != row[1]:
            raise ValueError("rows of different sizes")
        # One job has all policies and numbers of pieces of an experiment; the job of single
        # operations has the socket.
        what = [one.cell.option("what", "one") for one in (above, below)]
        paired = above.library == below.library and what[0] == what[1]
        return self.analysis.ratio(above, below, row[1], paired)

    def ratio(self, row: Row, mobius: str, policy: str, base: str) -> Ratio | None:
        """The ratio of Möbius' times under two policies."""
        return self.between(row, (mobius, policy), (mobius, base))

    def best_fixed(self, row: Row, mobius: str) -> str:
        """The name of the fastest fixed policy; "" if none was measured."""
        times = {policy: self.of(row, (mobius, policy)) for policy in POLICIES[1:]}
        measured = {policy: time for policy, time in times.items() if time is not None}
        return min(measured, key=lambda policy: measured[policy], default="")


@dataclass(frozen=True)
class _Goal:
    """A ratio that is to be at most `most`: of adaptive, or of the policy that is for it; in the
    row where it is most certainly small, or, with `everywhere`, in all."""

    title: str
    most: float
    rows: Callable[[Medians], list[Row]]
    # For a row, Möbius' name and a policy.
    ratio: Callable[[Medians, Row, str, str], Ratio | None]
    policy: str = ""
    everywhere: bool = False


@dataclass(frozen=True)
class _Result:
    ratio: Ratio
    row: Row


def _digits(value: float) -> str:
    return f"{value:.3f}" if value < 0.095 else format_ratio(value)


def _cells(*texts: str) -> Callable[[Medians], list[Row]]:
    return lambda medians: medians.rows([Cell.parse(f"schedule:{text}") for text in texts])


def _beside_fifo(medians: Medians, row: Row, mobius: str, policy: str) -> Ratio | None:
    return medians.ratio(row, mobius, policy, FIFO)


def _beside_whole(medians: Medians, row: Row, mobius: str, policy: str) -> Ratio | None:
    """One operation, that is."""
    cell, size = row
    if cell.option("n") == "1":
        return None
    whole = (Cell.parse(str(cell.without("n")) + ":n=1"), size)
    return medians.between(row, (mobius, policy), (mobius, policy), whole)


def _beside_best(medians: Medians, row: Row, mobius: str, policy: str) -> Ratio | None:
    return medians.ratio(row, mobius, policy, medians.best_fixed(row, mobius))


def _beside_socket(medians: Medians, row: Row, mobius: str, policy: str) -> Ratio | None:
    return medians.between(row, (mobius, policy), (mobius, ""), (Cell.parse(SOCKET), row[1]))


def _of_a_word(cell: str) -> Callable[[Medians], list[Row]]:
    rows = _cells(f"{cell}:allocate:what=one")
    return lambda medians: [row for row in rows(medians) if row[1] <= _WORD_BYTES]


def _one(operation: str) -> Callable[[Medians], list[Row]]:
    return _cells(*[f"{operation}:{sync}:allocate:what=one" for sync in _SYNCS])


def _pieces(medians: Medians, least: int, most: int) -> list[Row]:
    return [row for row in medians.rows(medians.cells("pieces")) if least <= row[1] <= most]


def _scattered(medians: Medians) -> list[Row]:
    return [row for row in medians.rows(_SCATTERED) if row[1] == _SCATTERED_BYTES]


def _all_rows(medians: Medians) -> list[Row]:
    cells = {cell for cell, _, _, _ in medians.found}
    return medians.rows(sorted(cells, key=str))


_GOALS: Final = (
    _Goal("16 puts, then 16 gets: 1.76 times as fast as fifo", 1 / 1.76,
          _cells("put:flush:allocate:what=mixed"), _beside_fifo, "interleave"),
    _Goal("a get behind a put, beside fifo", 0.6,
          _cells("rget:flush:allocate:what=behind"), _beside_fifo, "gets-first"),
    _Goal("a put and its synchronisation, beside fifo", 0.56,
          _one("put"), _beside_fifo, "aggregate"),
    _Goal("a get and its synchronisation, beside fifo", 0.56,
          _one("get"), _beside_fifo, "aggregate"),
    _Goal("a put of a word and its flush, beside a word there and back over a plain socket", 1.2,
          _of_a_word("put:flush"), _beside_socket),
    _Goal("a put of a word and its fence, beside a word there and back over a plain socket", 1.2,
          _of_a_word("put:one-fence"), _beside_socket),
    _Goal("a buffer of 1 MB or more in n puts, beside one put, for every n", 1.1,
          lambda medians: _pieces(medians, _LARGE_BUFFER, _MOST), _beside_whole, everywhere=True),
    _Goal("a smaller buffer in n puts, beside one put, for every n", 1.1,
          lambda medians: _pieces(medians, 0, _LARGE_BUFFER - 1), _beside_whole, everywhere=True),
    _Goal("1,000 scattered puts of 8 bytes, beside one put of 8,000", 3,
          _scattered, _beside_whole, everywhere=True),
    _Goal("adaptive beside the best fixed policy, everywhere", MOST_OF_ADAPTIVE,
          _all_rows, _beside_best, everywhere=True),
)  # fmt: skip
# … and beside MPICH, from version 5 on.
_BESIDE_OTHERS: Final = ("1,000 scattered puts of 8 bytes, beside", 0.01)
_MPICH: Final = re.compile(r"MPICH ([5-9]|\d\d)\b")


def _find(goal: _Goal, medians: Medians, mobius: str, policy: str) -> list[_Result]:
    """The ratios that decide a goal, the largest first."""
    found = []
    for row in goal.rows(medians):
        ratio = goal.ratio(medians, row, mobius, policy)
        if ratio is not None:
            found.append(_Result(ratio, row))
    if goal.everywhere:
        return _largest_first(found)
    return sorted(found, key=lambda one: one.ratio.high)[:1]


def _largest_first(results: list[_Result]) -> list[_Result]:
    return sorted(results, key=lambda one: one.ratio.value, reverse=True)


def _above(results: list[_Result], most: float) -> list[_Result]:
    return [one for one in results if one.ratio.value > most]


def _verdict(results: list[_Result], most: float, launches: int) -> str:
    met = not _above(results, most)
    if met:
        certain = all(one.ratio.high <= most for one in results)
    else:
        certain = any(one.ratio.low > most for one in results)
    is_certain = certain and launches > 1
    return ("met" if met else "not met") + ("" if is_certain else ", not for certain")


def _where(results: list[_Result], most: float) -> str:
    """The rows that exceed the limit, else the row that is closest to it."""
    named = _above(results, most) or results[:1]
    has_several = len({row.row[0].option("what") for row in results}) > 1
    places = []
    for one in named:
        cell, size = one.row
        place = f"{words(cell)}, {format_bytes(size)}"
        if has_several:
            place = f"{cell.operation}, {cell.option('what')}, {place}"
        places.append(place if len(named) == 1 else f"{place}: {_digits(one.ratio.value)}")
    return "; ".join(places)


def _shown(results: list[_Result]) -> str:
    if not results:
        return '<td class="n none">–</td>'
    ratio = results[0].ratio
    text = f"{_digits(ratio.value)} ({_digits(ratio.low)} to {_digits(ratio.high)})"
    return tables.number(text, ratio.value)


def _others(medians: Medians, mobius: str, row: Row, others: list[str]) -> list[str]:
    """The other policies' times, as multiples of adaptive's."""
    cells = []
    for library in others:
        ratio = medians.between(row, (library, ""), (mobius, ADAPTIVE))
        cells.append(ratio_cell(ratio.value if ratio is not None else None))
    return cells


def goals(book: Book, medians: Medians, mobius: str) -> tuple[str, list[str]]:
    """The table of all goals that were measured, and those of them that were not met in words."""
    others = list(dict.fromkeys(
        library for _, _, library, policy in medians.found if library != mobius and not policy
    ))  # fmt: skip
    rows: list[list[str]] = []
    missed: list[str] = []

    def add(
        title: str, most: float, mine: list[_Result], fixed: list[_Result], policy: str
    ) -> None:
        if not mine:
            return
        launches = min(medians.launches(one.row, mobius) for one in mine)
        verdict = _verdict(mine, most, launches)
        if not verdict.startswith("met") and fixed and not _above(fixed, most):
            verdict = f"met by {policy} only"
        if not verdict.startswith("met"):
            missed.append(title)
        rows.append([
            escape(title), tables.number(f"≤ {_digits(most)}", most), _shown(mine),
            _shown(fixed), f"<td><b>{escape(verdict)}</b></td>",
            f"<td>{escape(_where(mine, most))}</td>",
            *_others(medians, mobius, mine[0].row, others),
        ])  # fmt: skip

    for goal in _GOALS:
        mine = _find(goal, medians, mobius, ADAPTIVE)
        fixed = _find(goal, medians, mobius, goal.policy) if goal.policy else []
        add(goal.title, goal.most, mine, fixed, goal.policy)
    for library in filter(lambda one: _MPICH.match(book.label(one)), others):
        found = []
        for row in _scattered(medians):
            ratio = medians.between(row, (mobius, ADAPTIVE), (library, ""))
            if ratio is not None:
                found.append(_Result(ratio, row))
        title, most = _BESIDE_OTHERS
        add(f"{title} {book.label(library)}", most, _largest_first(found), [], "")
    if not rows:
        return "", []
    head = [
        "goal: a ratio of times", "at most", "adaptive", "the policy for it", "verdict", "where",
        *(f"{book.head(library)} ÷ adaptive" for library in others),
    ]  # fmt: skip
    return "<h3>What was to be reached</h3>" + tables.table(head, rows, 1), missed

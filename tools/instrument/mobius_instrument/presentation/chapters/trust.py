# SPDX-License-Identifier: BSD-3-Clause
"""The instrument measures itself: its cost, the same twice, a known delay."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

import numpy as np

from mobius_instrument.cells import format_bytes, format_ns, format_ratio
from mobius_instrument.experiments import KNOWN_PERCENT
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import Book, Chapter, listing, paragraph
from mobius_instrument.presentation.selfcheck import (
    CLOSE,
    MOST,
    Pair,
    close,
    floor_of,
    is_found,
    slower,
    started_twice,
    twice,
)

# The cost that measuring may add to a sample, in reads of the clock.
_MOST_READS: Final = 2


def _costs(book: Book, names: Iterable[str]) -> tuple[list[list[str]], list[str]]:
    """Rows about the cost of measuring, and the costs that are too large."""
    rows: list[list[str]] = []
    sentences: list[str] = []
    for library in names:
        timer = book.median(library, "self:timer:none:none", 1)
        call = book.median(library, "self:call:none:none", 1)
        loop = book.median(library, "self:loop:none:none", 1)
        row = [book.head(library), *(
            tables.number(format_ns(value), value) if value else '<td class="n none">–</td>'
            for value in (timer, loop, call)
        )]  # fmt: skip
        if timer and call:
            # A sample contains one read of the clock and at least one leg.
            reads = (timer + call) / timer
            kind = "faster" if reads <= _MOST_READS else "slower"
            row.append(f'<td class="n {kind}" data-v="{reads:.3g}"><b>{reads:.2f}</b></td>')
            if reads > _MOST_READS:
                sentences.append(
                    f"The instrument adds {reads:.1f} reads of the clock to a sample of"
                    f" {book.label(library)}, more than {_MOST_READS}."
                )
        else:
            row.append('<td class="n none">–</td>')
        rows.append(row)
    return rows, sentences


def _checks(book: Book) -> tuple[list[list[str]], list[str]]:
    """Rows about results that are known beforehand, and sentences about them."""
    analysis = book.analysis
    same, slow, again = twice(analysis), slower(analysis), started_twice(analysis)
    rows = []
    for library in dict.fromkeys(pair.library for pair in same):
        for what, pairs in (
            ("one program in two turns", same),
            (f"the same, {KNOWN_PERCENT} % slower", slow),
            ("two programs", again),
        ):
            of = [pair for pair in pairs if pair.library == library]
            if of:
                rows.append(_row(book, what, of, judged=pairs is not again))
    return rows, _told(book, same, slow, again)


def _row(book: Book, what: str, pairs: list[Pair], judged: bool) -> list[str]:
    worst = max(pairs, key=lambda pair: pair.off)
    good = close(pairs) >= MOST * len(pairs)
    return [
        book.head(pairs[0].library), what,
        tables.number(format_ratio(_middle([pair.true for pair in pairs])), 0),
        tables.number(format_ratio(_middle([pair.ratio.value for pair in pairs])), 0),
        f'<td class="n {("faster" if good else "slower") if judged else ""}">'
        f"{close(pairs)} of {len(pairs)}</td>",
        f"{_percent(worst)} ({_where(worst)})",
    ]  # fmt: skip


def _middle(values: list[float]) -> float:
    return float(np.median(values))


def _told(book: Book, same: list[Pair], slow: list[Pair], again: list[Pair]) -> list[str]:
    sentences = []
    if same:
        told = (
            f"differed by less than {CLOSE:.0%} from itself in {close(same)} of {len(same)} times"
        )
        if close(same) >= MOST * len(same):
            sentences.append(f"A program {told}.")
        else:
            worst = max(same, key=lambda pair: pair.off)
            sentences.append(
                f"A program {told} only, and by up to {_percent(worst)}"
                f" ({book.label(worst.library)}, {_where(worst)})."
            )
    if slow:
        found = sum(map(is_found, slow))
        sentences.append(
            f"The instrument found {found} of {len(slow)} differences of about {KNOWN_PERCENT} %"
            " that it had made."
        )
    if again:
        sentences.append(
            f"A second start of the same library differed by up to {100 * floor_of(again):.0f} % in"
            f" {MOST:.0%} of the times, because its memory lies elsewhere. Smaller differences"
            " between libraries are not told."
        )
    return sentences


def _percent(pair: Pair) -> str:
    return f"{100 * pair.off:.1f} %"


def _where(pair: Pair) -> str:
    return f"{pair.cell.operation}, {pair.cell.sync}, {format_bytes(pair.size)}"


def _rounds(book: Book) -> str:
    """A sentence about the rounds."""
    results = book.analysis.results
    if not results.rounds:
        return ""
    stopped = sorted({name for one in results.rounds.values() for name in one.stopped})
    text = (
        f"The libraries were measured in {len(results.rounds):,} rounds. In {results.moved_rounds}"
        " of them the processors or the memory changed their speed: these are not compared."
    )
    if stopped:
        names = listing(book.label(name) for name in stopped)
        text += (
            " Stopped for the turns of others, since they use a processor while they wait:"
            f" {names}."
        )
    return paragraph(text)


def chapter(book: Book) -> Chapter | None:
    """The chapter, if the self-check was measured."""
    libraries = book.libraries("trust")
    costs = book.of("self")
    if not libraries and not costs:
        return None
    names = dict.fromkeys([*(one.library for one in costs), *libraries])
    rows, costly = _costs(book, names)
    checks, told = _checks(book)
    sentences = [*costly, *told]
    html = (
        _rounds(book)
        + paragraph(
            "A program that has two turns in each round must not differ from itself. In a third"
            f" turn it does {KNOWN_PERCENT} % more than is counted: this must be found. A second"
            " program of the same library may differ: its memory lies at other places."
        )
        + tables.table(
            ("library", "check", "true ratio", "found", f"closer than {CLOSE:.0%}",
             "largest difference"), checks, 5,
        )
        + paragraph(
            "The cost of a read of the clock, and of a leg of the test-suite without a library: in"
            " a loop that is compiled for its operation, as small puts and gets of two processes"
            " are, and in calls through pointers, which are part of all other times."
        )
        + tables.table(
            ("library", "read of the clock", "empty leg in a loop", "through pointers",
             "added to a sample, in reads"), rows, 1
        )
        + "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in sentences) + "</ul>"
    )  # fmt: skip
    return Chapter("trust", "Can these numbers be trusted", html, tuple(sentences))

# SPDX-License-Identifier: BSD-3-Clause
"""The instrument measures itself: its cost, the same twice, a known delay."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

import numpy as np

from mobius_instrument.cells import Cell, format_bytes, format_ns, format_ratio
from mobius_instrument.compare import THRESHOLD
from mobius_instrument.experiments import KNOWN_DELAY_US
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import Book, Chapter, note, paragraph
from mobius_instrument.stats import Floats, ratio_of_medians

# The cost that measuring may add to a sample, in reads of the clock.
_MOST_READS: Final = 2
# An interval as wide as this says little, even if it contains 1.
_VAGUE: Final = 1.1
_CELL = "trust:put:pscw:allocate:run="


def _samples(book: Book, library: str, run: str, size: int) -> list[Floats] | None:
    key = (library, Cell.parse(_CELL + run))
    results = book.analysis.results
    return results.one_way(key, size) if size in results.samples.get(key, {}) else None


def _median(launches: list[Floats]) -> float:
    return float(np.median(np.concatenate(launches)))


def _costs(book: Book, names: Iterable[str]) -> tuple[list[list[str]], list[str]]:
    """Rows about the cost of measuring, and the costs that are too large."""
    rows: list[list[str]] = []
    sentences: list[str] = []
    for library in names:
        timer = book.median(library, "self:timer:none:none", 1)
        call = book.median(library, "self:call:none:none", 1)
        row = [book.head(library), *(
            tables.number(format_ns(value), value) if value else '<td class="n none">–</td>'
            for value in (timer, call)
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


def _checks(book: Book, libraries: list[str]) -> tuple[list[list[str]], list[str]]:
    """Rows about results that are known beforehand, and those that were not found."""
    checks: list[list[str]] = []
    sentences: list[str] = []
    false: list[str] = []
    unseen = 1.0
    for library in libraries:
        for size in sorted(
            book.analysis.results.samples.get((library, Cell.parse(_CELL + "first")), {})
        ):
            first, second = (_samples(book, library, run, size) for run in ("first", "second"))
            if first and second:
                ratio = ratio_of_medians(second, first, book.analysis.results.seed)
                real = ratio.is_real(THRESHOLD)
                unseen = max(unseen, ratio.high, 1 / ratio.low)
                vague = not real and max(ratio.high, 1 / ratio.low) > _VAGUE
                kind = "slower" if real else "mixed" if vague else "faster"
                verdict = "differs" if real else "too noisy to tell" if vague else "no difference"
                checks.append([
                    book.head(library), "the same twice", format_bytes(size), "1.00",
                    format_ratio(ratio.value),
                    f"{format_ratio(ratio.low)} … {format_ratio(ratio.high)}",
                    f'<td class="{kind}"><b>{verdict}</b></td>',
                ])  # fmt: skip
                if real:
                    false.append(
                        f"{book.label(library)}, {format_bytes(size)},"
                        f" {format_ratio(ratio.value)} times"
                    )
            delayed = _samples(book, library, "delayed", size)
            if first and delayed:
                found_us = (_median(delayed) - _median(first)) / 1e3
                right = 0.75 * KNOWN_DELAY_US <= found_us <= 1.5 * KNOWN_DELAY_US
                checks.append([
                    book.head(library), "a delay of its operations", format_bytes(size),
                    f"{KNOWN_DELAY_US} µs", f"{found_us:.1f} µs", "",
                    f'<td class="{"faster" if right else "slower"}"><b>'
                    f'{"found" if right else "not as injected"}</b></td>',
                ])  # fmt: skip
                if not right:
                    sentences.append(
                        f"The self-check injected {KNOWN_DELAY_US} µs and found {found_us:.1f} µs."
                    )
    if false:
        sentences.append(
            f"The self-check found differences where there are none ({'; '.join(false)}). The"
            " machine was not quiet: take differences of that size for noise."
        )
    if unseen > _VAGUE:
        sentences.append(
            f"Launches of the same differ so much that a difference of up to"
            f" {100 * (unseen - 1):.0f} % could not have been told from noise."
        )
    return checks, sentences


def chapter(book: Book) -> Chapter | None:
    """The chapter, if the self-check was measured."""
    libraries = book.libraries("trust")
    costs = book.of("self")
    if not libraries and not costs:
        return None
    names = dict.fromkeys([*(one.library for one in costs), *libraries])
    rows, costly = _costs(book, names)
    checks, wrong = _checks(book, libraries)
    sentences = [*costly, *wrong]
    if not sentences and checks:
        sentences.append(
            "The self-check found no difference between equal programs, and every difference that"
            " was made."
        )
    html = (
        paragraph(
            "The cost of a read of the clock, and of a leg of the test-suite without a library:"
            " calls through pointers, which are part of every time of the test-suite."
        )
        + tables.table(
            ("library", "read of the clock", "empty leg", "added to a sample, in reads"), rows, 1
        )
        + paragraph(
            "The same library against itself must show no difference; a delay that Möbius' hook"
            " adds"
            f" to each operation (0 to {KNOWN_DELAY_US} µs before and after, {KNOWN_DELAY_US} µs on"
            " average) must be found with its size."
        )
        + tables.table(
            ("library", "check", "size", "true", "found", "95 % interval", "verdict"), checks, 9
        )
        + "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in sentences) + "</ul>"
        + note("Medians; the sum of two delays, each 0 to d, has the median d.")
    )  # fmt: skip
    return Chapter("trust", "Can these numbers be trusted", html, tuple(sentences))

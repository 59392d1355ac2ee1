# SPDX-License-Identifier: BSD-3-Clause
"""Changes since an earlier run, beyond noise."""

from __future__ import annotations

from html import escape

from mobius_instrument.cells import format_bytes, format_ns, format_ratio
from mobius_instrument.compare import caveats, compare
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import Book, Chapter, details, listing, paragraph
from mobius_instrument.results import Results

_MOST_ROWS = 400
_MOST_NAMED = 12


def _alone(title: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return paragraph(f"{title}: {', '.join(names[:_MOST_NAMED])}{more}.")


def chapter(book: Book, earlier: Results) -> Chapter:
    """The chapter of `report --compare`."""
    results = book.analysis.results
    comparison = compare(earlier, results)
    real = [one for one in comparison.differences if one.real]
    real.sort(key=lambda one: -abs(one.ratio if one.ratio > 1 else 1 / one.ratio))
    rows = [
        [
            book.head(one.library),
            f"<code>{escape(one.cell)}</code>",
            tables.number(format_bytes(one.bytes), one.bytes),
            tables.number(format_ns(one.a_ns), one.a_ns),
            tables.number(format_ns(one.b_ns), one.b_ns),
            f'<td class="n {one.verdict}" data-v="{one.ratio:.5g}"><b>{format_ratio(one.ratio)}</b>'
            f"<small>{format_ratio(one.low)} … {format_ratio(one.high)}</small></td>",
        ]
        for one in real[:_MOST_ROWS]
    ]
    slower = [one for one in real if one.verdict == "slower"]
    counts = (
        f"{len(comparison.differences)} times compared with the earlier run:"
        f" {len(real) - len(slower)} faster, {len(slower)} slower,"
        f" {len(comparison.differences) - len(real)} without a certain difference."
    )
    sentences = [counts]
    if slower:
        labels = listing(dict.fromkeys(book.label(one.library) for one in slower))
        worst = slower[0]
        sentences.append(
            f"Slower than before is something in {labels}; most {worst.cell} at"
            f" {format_bytes(worst.bytes)} in {book.label(worst.library)}:"
            f" {format_ratio(worst.ratio)} times."
        )
    doubts = [f"Before and now are of {text}." for text in caveats(earlier, results)]
    html = "".join(paragraph(text) for text in (*sentences, *doubts))
    head = ("library", "cell", "size", "before", "now", "now ÷ before")
    if rows:
        html += details("What changed", tables.table(head, rows, 2, sortable=True), opened=True)
    html += _alone("Only before", comparison.only_a) + _alone("Only now", comparison.only_b)
    return Chapter("changes", "What changed since an earlier run", html, tuple(sentences))

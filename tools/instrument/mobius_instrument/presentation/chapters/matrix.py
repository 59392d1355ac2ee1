# SPDX-License-Identifier: BSD-3-Clause
"""The matrix: which combinations work here."""

from __future__ import annotations

from html import escape

from mobius_instrument.cells import Cell, format_ns
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import Book, Chapter, details, note, paragraph

_BAD = ("wrong", "crashed", "hung")


def _planned(book: Book) -> dict[str, list[Cell]]:
    plan = book.analysis.results.plan.get("cells")
    cells = plan if isinstance(plan, dict) else {}
    found = {
        library: [Cell.parse(text) for text in texts if text.startswith("matrix:")]
        for library, texts in cells.items()
    }
    return {library: texts for library, texts in found.items() if texts}


def _state(book: Book, library: str, cell: Cell) -> tuple[str, str]:
    """The status and HTML of a cell."""
    outcomes = book.analysis.outcomes().get((library, cell), [])
    series = book.analysis.one(library, cell)
    times = " / ".join(format_ns(s.median) for s in series.summaries.values()) if series else ""
    if not outcomes:
        return ("ok", f"✓ {times}") if times else ("none", "–")
    worst = min(outcomes, key=lambda one: (*_BAD, "refused").index(one.status)
                if one.status in (*_BAD, "refused") else 9)  # fmt: skip
    title = escape(worst.detail, quote=True)
    shown = f'<b title="{title}">{escape(worst.status)}</b>'
    return worst.status, shown + f"<small>{escape(worst.detail[:110])}</small>"


def bad_cells(book: Book) -> dict[str, dict[str, list[Cell]]]:
    """Cells by library and status, for what is wrong, crashed or hung."""
    found: dict[str, dict[str, list[Cell]]] = {}
    for library, cells in _planned(book).items():
        for cell in cells:
            status, _ = _state(book, library, cell)
            if status in (*_BAD, "refused"):
                found.setdefault(library, {}).setdefault(status, []).append(cell)
    return found


def _library_table(book: Book, library: str, cells: list[Cell]) -> str:
    memories = list(dict.fromkeys(cell.memory for cell in cells))
    rows = []
    for operation, sync in dict.fromkeys((cell.operation, cell.sync) for cell in cells):
        row = [operation, sync]
        for memory in memories:
            cell = next(
                (one for one in cells
                 if (one.operation, one.sync, one.memory) == (operation, sync, memory)), None,
            )  # fmt: skip
            if cell is None:
                row.append('<td class="none">–</td>')
            else:
                status, html = _state(book, library, cell)
                row.append(f'<td class="{status}">{html}</td>')
        rows.append(row)
    return tables.table(["operation", "synchronisation", *memories], rows, 9)


def chapter(book: Book) -> Chapter | None:
    """The chapter, if the matrix was measured."""
    planned = _planned(book)
    if not planned:
        return None
    bad = bad_cells(book)
    rows, sentences = [], []
    for library, cells in planned.items():
        mine = bad.get(library, {})
        states = [_state(book, library, cell)[0] for cell in cells]
        counts = [states.count(status) for status in ("ok", *_BAD, "refused", "none")]
        rows.append(
            [book.head(library), *(
                f'<td class="n {status if count else "none"}" data-v="{count}">'
                f"{f'<b>{count}</b>' if count and status in _BAD else count}</td>"
                for status, count in zip(("ok", *_BAD, "refused", "none"), counts, strict=True)
            )]
        )  # fmt: skip
        troubles = []
        for status in _BAD:
            if mine.get(status):
                kinds = sorted({f"{cell.operation} with {cell.sync}" for cell in mine[status]})
                more = f" and {len(kinds) - 3} more" if len(kinds) > 3 else ""
                troubles.append(f"{len(mine[status])} {status} ({', '.join(kinds[:3])}{more})")
        if troubles:
            sentences.append(
                f"Do not rely on everything in {book.label(library)}: of {len(cells)} combinations"
                f" {'; '.join(troubles)}."
            )
        elif "none" not in states:
            sentences.append(
                f"{book.label(library)}: {states.count('ok')} of {len(cells)} combinations of"
                " operation, synchronisation and memory gave right data, the rest was refused."
                if "refused" in states
                else f"{book.label(library)}: all {len(cells)} combinations of operation,"
                " synchronisation and memory gave right data."
            )
    head = ("library", "right data", *_BAD, "refused", "not measured")
    html = (
        paragraph(
            "Every operation with every synchronisation on every kind of memory, at 8 bytes and"
            " 64 KB,"
            " there and back, with known data in the target, its neighbourhood and the gaps. ✓ with"
            " the time of a leg at both sizes; wrong names the first wrong byte; refused is the"
            " library's own text. Each launch has a limit and a process group of its own."
        )
        + tables.table(head, rows, 1)
        + "".join(
            details(book.analysis.results.label(library), _library_table(book, library, cells))
            for library, cells in planned.items()
        )
        + note("Cells that crashed or hung were not tried again in later launches.")
    )
    return Chapter("matrix", "What can be relied on here", html, tuple(sentences))

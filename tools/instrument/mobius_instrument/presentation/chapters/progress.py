# SPDX-License-Identifier: BSD-3-Clause
"""Progress without the target, and overlap of transfers with computation (figure 12)."""

from __future__ import annotations

from html import escape
from statistics import median

from mobius_instrument.cells import Cell, format_bytes, format_ns
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import (
    SIZE_AXIS,
    TIME_AXIS,
    Book,
    Chapter,
    curve,
    figures,
    listing,
    note,
    numbers,
    paragraph,
)


def _ns(value: float) -> str:
    return format_ns(max(value, 0.0))


def _verdict(book: Book, library: str, cell: Cell) -> tuple[str, str]:
    """Class and HTML of a cell of the table: yes, on return, or the failure."""
    facts = {fact.name: fact for fact in book.facts.get((library, cell), [])}
    completes, arrives = facts.get("completes"), facts.get("arrives")
    if completes is None:
        outcomes = book.analysis.outcomes().get((library, cell), [])
        if not outcomes:
            return "none", "–"
        status = outcomes[0].status
        shown = "never (hangs)" if status == "hung" else status
        return status, f"<b>{shown}</b><small>{escape(outcomes[0].detail[:120])}</small>"
    late = completes.value != "yes" or (arrives is not None and arrives.value != "yes")
    if late:
        what = "completes" if completes.value != "yes" else "arrives"
        return "slower", f"<b>on return</b><small>{what} when the target calls the library</small>"
    return "faster", f"<b>yes</b><small>within {_ns(completes.number)}</small>"


def needs_target(book: Book) -> dict[str, list[str]]:
    """Operations of each library that wait for their target, as "put, lock, create"."""
    found: dict[str, list[str]] = {}
    for (library, cell), facts in book.facts.items():
        if cell.experiment == "progress" and any(
            fact.name in ("completes", "arrives") and fact.value != "yes" for fact in facts
        ):
            found.setdefault(library, []).append(f"{cell.operation} {cell.sync} {cell.memory}")
    return found


def chapter(book: Book) -> Chapter | None:
    """The chapter on progress."""
    libraries = book.libraries("progress")
    planned = book.analysis.results.plan.get("cells")
    names = planned if isinstance(planned, dict) else {}
    texts = dict.fromkeys(
        text for cells in names.values() for text in cells if text.startswith("progress:")
    )
    if not libraries or not texts:
        return None
    rows = []
    for text in texts:
        cell = Cell.parse(text)
        size = " (256 KB)" if cell.option("large") else ""
        row = [f"{cell.operation}{size}", cell.sync, cell.memory]
        for library in libraries:
            kind, html = _verdict(book, library, cell)
            row.append(f'<td class="{kind}">{html}</td>')
        rows.append(row)
    late = needs_target(book)
    total = {
        library: sum(
            1 for name, cell in book.facts if name == library and cell.experiment == "progress"
        )
        for library in libraries
    }
    sentences = []
    free = [book.label(library) for library in libraries if not late.get(library)]
    if free:
        sentences.append(
            f"Every operation tried completes while its target computes in {listing(free)}."
        )
    for library in libraries:
        if late.get(library):
            kinds = sorted({text.split()[0] for text in late[library]})
            sentences.append(
                f"{book.label(library)}: {len(late[library])} of {total[library]} kinds of"
                " operation"
                f" wait until the target calls the library ({listing(kinds)})."
            )
    ms = Cell.parse(next(iter(texts))).option("ms", "1000")
    html = (
        paragraph(
            "The target computes, reads its memory with plain loads, and calls nothing of the"
            " library. Meanwhile the origin operates once and waits for completion. Yes: it"
            " completed, and the target saw the data, before the target came back; the time is the"
            " longest of three trials, on a host where other programs may run. On return: only when"
            f" the target came back into the library, after {ms} ms."
        )
        + "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in sentences) + "</ul>"
        + tables.table(
            ["operation", "synchronisation", "memory", *(book.head(name) for name in libraries)],
            rows, 9,
        )
    )  # fmt: skip
    return Chapter("progress", "Progress without the target", html, tuple(sentences))


Hidden = dict[tuple[str, Cell], dict[int, float]]


def _hidden(book: Book) -> Hidden:
    """The share of the shorter of transfer and computation that overlapping saves, by size."""
    found: dict[tuple[str, Cell], dict[int, list[float]]] = {}
    for (library, cell), facts in book.facts.items():
        for fact in facts if cell.experiment == "overlap" else ():
            size = fact.detail.partition(" bytes")[0]
            if size.isdigit():
                launches = found.setdefault((library, cell), {}).setdefault(int(size), [])
                launches.append(min(max(fact.number, 0.0), 1.0))
    return {
        key: {size: median(shares) for size, shares in sizes.items()}
        for key, sizes in found.items()
    }


def _overlap_rows(book: Book, hidden: Hidden, sizes: list[int]) -> list[list[str]]:
    rows = []
    for cell in dict.fromkeys(cell for _, cell in hidden):
        for library in book.libraries("overlap"):
            found = hidden.get((library, cell))
            if found is None:
                continue
            side = "at the " + cell.option("side", "target")
            row = [side, cell.operation, cell.sync, cell.memory, book.head(library)]
            for size in sizes:
                share = found.get(size)
                if share is None:
                    row.append('<td class="n none">–</td>')
                    continue
                kind = "faster" if share > 0.8 else "slower" if share < 0.3 else "mixed"
                shown = f"<b>{100 * share:.0f} %</b>"
                row.append(f'<td class="n {kind}" data-v="{share:.3f}">{shown}</td>')
            rows.append(row)
    return rows


def _overlap_charts(book: Book) -> list[str]:
    """Figure 12 for each library."""
    charts = []
    wanted = Cell.parse("overlap:put:pscw:allocate:side=target")
    for library in book.libraries("overlap"):
        parts = [
            one
            for one in book.of("overlap")
            if one.library == library and one.cell.without("part") == wanted
        ]
        curves = [
            curve(book, one, one.cell.option("part"), number) for number, one in enumerate(parts)
        ]
        title = f"{book.label(library)}: put, pscw, the target computes"
        charts.append(book.charts.figure(title, SIZE_AXIS, TIME_AXIS, curves, apart=True))
    return charts


def _overlap_sentences(book: Book, hidden: Hidden, size: int) -> list[str]:
    """Where a computing target hides most of a transfer, and where least."""
    sentences = []
    for library in book.libraries("overlap"):
        shares = {
            f"{cell.operation} with {cell.style}": found[size]
            for (name, cell), found in hidden.items()
            if name == library
            and cell.option("side") == "target"
            and cell.operation in ("put", "get")
            and size in found
        }
        if shares:
            most, least = (pick(shares, key=lambda one: shares[one]) for pick in (max, min))
            text = (
                f"{book.label(library)} hides {100 * shares[most]:.0f} % of {format_bytes(size)}"
                f" behind a target that computes at best ({most})"
            )
            if least != most:
                text += f", {100 * shares[least]:.0f} % at worst ({least})"
            sentences.append(text + ".")
    return sentences


def overlap_chapter(book: Book) -> Chapter | None:
    """Figure 12, and the share that is hidden."""
    hidden = _hidden(book)
    if not hidden:
        return None
    sizes = sorted({size for found in hidden.values() for size in found})
    sentences = _overlap_sentences(book, hidden, sizes[-1])
    head = ["computation", "transfer", "synchronisation", "memory", "library"]
    html = (
        paragraph(
            "A transfer, a computation of about the same length, and both at once: at the passive"
            " side within its exposure (paper 3, §4.6), or at the origin between start and"
            " completion. Hidden is the share of the shorter of the two that both together save;"
            " 100 %: both take no longer than one."
        )
        + "<ul>"
        + "".join(f"<li>{escape(text)}</li>" for text in sentences)
        + "</ul>"
        + figures(*_overlap_charts(book))
        + numbers(
            tables.table(
                [*head, *(format_bytes(size) for size in sizes)],
                _overlap_rows(book, hidden, sizes),
                5,
                sortable=True,
            )
        )
        + note("Medians over the launches.")
    )
    return Chapter("overlap", "Overlap with computation", html, tuple(sentences))

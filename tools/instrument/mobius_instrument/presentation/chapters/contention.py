# SPDX-License-Identifier: BSD-3-Clause
"""Many processes at once: atomics, accumulate, locks, and all of them putting."""

from __future__ import annotations

from mobius_instrument.cells import Cell, format_bytes, format_ns, format_ratio
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    Book,
    Chapter,
    figures,
    listing,
    numbers,
    paragraph,
    shape,
    time_cell,
)
from mobius_instrument.presentation.charts import Axis, Curve

_PROCESSES = Axis("processes", "number", log=False)


def _by_processes(book: Book, chosen: list[Series], size: int, of_all: bool) -> list[Curve]:
    """Curves over the number of processes: time of one, or rate of all."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in chosen:
        summary = one.summaries.get(size)
        if summary is None:
            continue
        processes = float(one.cell.option("procs", "2"))
        value = 1e9 * processes / summary.median if of_all else summary.median
        words = [one.cell.operation]
        if one.cell.sync != "none":
            words.append(one.cell.sync)
        if one.cell.memory not in ("allocate", "local"):
            words.append(one.cell.memory)
        rest = shape(one.cell, "procs", "partner")
        name = ", ".join([*words, *([rest] if rest else [])])
        points.setdefault((one.library, name), []).append((processes, value))
    styles: dict[str, int] = {}
    return [
        Curve(
            f"{book.label(library)}: {name}", library, sorted(found),
            styles.setdefault(name, len(styles)), book.is_mobius(library),
        )
        for (library, name), found in points.items()
    ]  # fmt: skip


def _table(book: Book, chosen: list[Series]) -> str:
    sizes = sorted({size for one in chosen for size in one.summaries})
    counts = sorted({int(one.cell.option("procs", "2")) for one in chosen})
    groups: dict[tuple[str, str, str, str, str], dict[tuple[int, int], float]] = {}
    for one in chosen:
        cell = one.cell
        key = one.library, cell.operation, cell.sync, cell.memory, shape(cell, "procs", "partner")
        for size, summary in one.summaries.items():
            groups.setdefault(key, {})[int(cell.option("procs", "2")), size] = summary.median
    rows = []
    for (library, operation, sync, memory, rest), times in groups.items():
        row = [book.head(library), operation, f"{sync}, {memory}", rest]
        row += [time_cell(times.get((count, size))) for size in sizes for count in counts]
        rows.append(row)
    head = ["library", "operation", "how", ""]
    head += [f"{format_bytes(size)}, {count} processes" for size in sizes for count in counts]
    return numbers(tables.table(head, rows, 4, sortable=True))


def _sentences(book: Book, chosen: list[Series], what: str) -> list[str]:
    """All libraries with the most processes, at the smallest size and at the largest."""
    found = []
    most = max(int(one.cell.option("procs", "2")) for one in chosen)
    sizes = sorted({size for one in chosen for size in one.summaries})
    cores = book.analysis.results.host.get("cores")
    # A library that spins while processes share a CPU is slow because of that.
    where = f" on {cores} CPUs" if isinstance(cores, int) and most > cores else ""
    for size in dict.fromkeys((sizes[0], sizes[-1])):
        there = [
            one for one in chosen
            if int(one.cell.option("procs", "2")) == most and size in one.summaries
        ]  # fmt: skip
        best: dict[str, Series] = {}
        for one in sorted(there, key=lambda one: one.summaries[size].median):
            best.setdefault(one.library, one)
        if not best:
            continue
        first, *others = best.values()
        fast = first.summaries[size].median
        behind = [
            f"{format_ns(slow)} in {book.label(one.library)} ({format_ratio(slow / fast)} times)"
            for one in others
            if book.analysis.comparable(first, one, size)
            for slow in (one.summaries[size].median,)
        ]
        if behind:
            found.append(
                f"{what} of {format_bytes(size)} by {most} processes{where}: {format_ns(fast)} each"
                f" in {book.label(first.library)}, {listing(behind)}."
            )
    return found


def _is_drawn(cell: Cell) -> bool:
    return cell.operation == "fetch_op"


def _is_said(cell: Cell) -> bool:
    """Whether sentences may compare it between libraries: the same word for all processes, and the
    kind of lock that all libraries have."""
    return cell.option("word", "one") == "one" and cell.sync != "mutex"


_ABOUT = {
    "atomics": (
        "Atomic updates",
        "An update of one word",
        "All processes, rank 0 among them, update one word of rank 0, or each its own word there;"
        " every update is complete before the next. The final values of the words are compared with"
        " the number of updates. Plots are of fetch-and-op, the table of all.",
    ),
    "accumulate": (
        "Accumulate",
        "Adding to one array",
        "All processes add arrays of 8-byte integers to the same array of rank 0. Its elements are"
        " compared with the number of additions.",
    ),
    "locks": (
        "Locks",
        "Locking, reading, writing and unlocking a word",
        "All processes lock rank 0, get a word, put it back increased by one, and unlock. The"
        " final value shows whether the lock excludes.",
    ),
    "scaling": (
        "All processes at once",
        "A put to the next process",
        "Each process puts to the next one of a ring (sends, for messages), all at once. With more"
        " processes than CPUs the result shows how a library waits.",
    ),
}


def chapters(book: Book) -> list[Chapter]:
    """A chapter for each experiment that was measured."""
    found = []
    for experiment, (title, what, text) in _ABOUT.items():
        chosen = [one for one in book.of(experiment) if one.summaries]
        if not chosen:
            continue
        sizes = sorted({size for one in chosen for size in one.summaries})
        # One kind of update: the table has all.
        drawn = [one for one in chosen if experiment != "atomics" or _is_drawn(one.cell)]
        charts = [
            book.charts.figure(
                f"{title}: time of one, {format_bytes(size)}",
                _PROCESSES, Axis("time", "ns"), _by_processes(book, drawn, size, False),
            )
            for size in (sizes if len(sizes) < 3 else [sizes[0], sizes[-1]])
        ]  # fmt: skip
        if experiment == "atomics":
            charts.append(
                book.charts.figure(
                    "Updates per second of all processes", _PROCESSES, Axis("rate", "rate"),
                    _by_processes(book, drawn, sizes[0], True),
                )
            )  # fmt: skip
        html = paragraph(text) + figures(*charts) + _table(book, chosen)
        alike = [one for one in chosen if _is_said(one.cell)]
        said = alike and experiment != "scaling"
        sentences = tuple(_sentences(book, alike, what)) if said else ()
        found.append(Chapter(experiment, title, html, sentences))
    return found

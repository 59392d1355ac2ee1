# SPDX-License-Identifier: BSD-3-Clause
"""Table 2 of paper 3 for every library found: the cost of a transfer of four bytes."""

from __future__ import annotations

from mobius_instrument.cells import Cell, format_ns, format_ratio, memory_words
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import Book, Chapter, note, paragraph, time_cell

_SYNCS = ("fence", "pscw", "lock", "lockx", "lock_all", "flush")
_MEMORIES = (("create", "malloc"), ("alloc_mem", "Alloc_mem"), ("allocate", "allocate"))
_BYTES = 4
# Table 2 of the paper, in microseconds: send/receive, fence, fence with Alloc_mem, start/post,
# start/post with Alloc_mem.
_PAPER = (
    ("SX-6, within a node", 3.0, 42.2, 53.6, 26.9, 33.6),
    ("SR8000, within a node", 11.2, 64.9, None, 182.9, None),
    ("Sun Fire 6800", 2.8, 35.3, 4.7, 29.4, 3.3),
    ("IBM p690, within a node", 3.5, 63.9, None, 69.2, None),
    ("LAM/MPI, within a node", 15.4, 164.3, None, 84.1, None),
)


def _times(book: Book, library: str, operation: str) -> dict[tuple[str, str], float]:
    found = {}
    for sync in _SYNCS:
        for memory, _ in _MEMORIES:
            value = book.median(library, f"sync-cost:{operation}:{sync}:{memory}", _BYTES)
            if value is not None:
                found[sync, memory] = value
    return found


def _messages(book: Book, library: str) -> float | None:
    return book.median(library, "sync-cost:sendrecv:none:local", _BYTES)


def _table(book: Book, libraries: list[str], operation: str) -> str:
    times = {library: _times(book, library, operation) for library in libraries}
    shown = [library for library in libraries if times[library]]
    if not shown:
        return ""
    messages = {library: _messages(book, library) for library in shown}
    best = {
        library: min([*times[library].values(), *filter(None, [messages[library]])])
        for library in shown
    }
    rows = [
        ["send/receive", "", *(time_cell(messages[name], best[name]) for name in shown)],
        *(
            [sync, words, *(time_cell(times[name].get((sync, memory)), best[name])
                            for name in shown)]
            for sync in _SYNCS for memory, words in _MEMORIES
        ),
    ]  # fmt: skip
    head = ["synchronisation", "memory", *map(book.head, shown)]
    return tables.table(head, rows, 2, sortable=True)


def _paper_table() -> str:
    head = ("", "send/receive", "fence", "fence, Alloc_mem", "start/post", "start/post, Alloc_mem")
    rows = [
        [name, *(time_cell(None if value is None else value * 1e3) for value in values)]
        for name, *values in _PAPER
    ]
    return tables.table(head, rows, 1)


def _sentences(book: Book, libraries: list[str]) -> list[str]:
    best: dict[str, tuple[float, str, str]] = {}
    for library in libraries:
        times = _times(book, library, "put")
        if times:
            (sync, memory), value = min(times.items(), key=lambda item: item[1])
            best[library] = (value, sync, memory)
    found = []
    order = sorted(best, key=lambda name: best[name][0])
    cells = {
        library: (library, Cell.parse(f"sync-cost:put:{sync}:{memory}"))
        for library, (_, sync, memory) in best.items()
    }
    if len(order) > 1 and book.comparable(cells[order[0]], cells[order[1]], _BYTES):
        first, second = order[0], order[1]
        value, sync, memory = best[first]
        found.append(
            f"For small transfers use {book.label(first)} with {sync} on {memory_words(memory)}: a"
            f" put of four bytes that the target knows of takes {format_ns(value)}, in"
            f" {book.label(second)} at best {format_ns(best[second][0])}"
            f" ({format_ratio(best[second][0] / value)} times as long, with {best[second][1]})."
        )
    for library in libraries:
        times, messages = _times(book, library, "put"), _messages(book, library)
        if not times or messages is None or library not in best:
            continue
        (worst_sync, worst_memory), worst = max(times.items(), key=lambda item: item[1])
        value, sync, _ = best[library]
        compared = "faster than" if value < messages else "slower than"
        ratio = messages / value if value < messages else value / messages
        found.append(
            f"In {book.label(library)} a small put is {format_ratio(ratio)} times {compared}"
            f" send/receive when synchronised by {sync}; {worst_sync} on"
            f" {memory_words(worst_memory)} costs {format_ratio(worst / value)} times that."
        )
    return found


def chapter(book: Book) -> Chapter | None:
    """The chapter, if the experiment was measured."""
    libraries = book.libraries("sync-cost")
    if not libraries:
        return None
    parts = [
        paragraph(
            "One put (get) of four bytes with everything that makes it known to the target: half of"
            " a ping-pong in which each leg opens and closes its epoch, as in Table 2 of paper 3."
            " For lock, lock_all and flush, in which the target takes no part, a flag put in the"
            " same way follows. Strong: the cheapest of each library."
        ),
        "<h3>Put</h3>",
        _table(book, libraries, "put"),
        "<h3>Get</h3>",
        _table(book, libraries, "get"),
        "<h3>Table 2 of the paper, 2005</h3>",
        _paper_table(),
        note("Twenty years and other machines: only the ratios within a row can be compared."),
    ]
    sentences = _sentences(book, libraries)
    return Chapter("sync-cost", "What synchronisation costs", "".join(parts), tuple(sentences))

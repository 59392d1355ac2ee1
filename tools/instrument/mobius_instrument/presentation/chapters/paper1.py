# SPDX-License-Identifier: BSD-3-Clause
"""The experiment of paper 1: LAPI compared with MPI, put and get, on one host and between hosts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from mobius_instrument.cells import (
    PAPER1_EXPERIMENTS,
    bandwidth_mb_s,
    format_bytes,
    format_mb_s,
    format_ns,
    format_ratio,
)
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    SIZE_AXIS,
    TIME_AXIS,
    Book,
    Chapter,
    curve,
    figures,
    note,
    paragraph,
    time_cell,
)
from mobius_instrument.presentation.charts import Axis, Curve

_BANDWIDTH: Final = Axis("bandwidth", "mbs")
_LAPI: Final = "lapi"
# MPI-2 in 2003: collective epochs on memory that the program has.
_MPI2: Final = ("fence", "create")
_PLACES: Final = ("on one host", "between hosts")
# Sections 4.1 and 4.2 of the paper: within a partition of eight processors, and between two.
_PAPER: Final = (
    ("LAPI", "14 µs", "22.4 µs", "2,000 MB/s", "54 µs", "97.9 µs", "230 MB/s"),
    ("MPI-2", "390 µs", "390 µs", "1,200 MB/s", "400 µs", "400 µs", "300 MB/s"),
    ("what the machine can", "–", "–", "2,000 MB/s", "–", "–", "300 MB/s"),
)


@dataclass(frozen=True)
class _Way:
    """One way to pass data, and its series of put and get."""

    library: str
    words: str
    put: Series | None
    get: Series | None


def _named(series: list[Series], sync: str, memory: str) -> Series | None:
    return next((one for one in series if (one.cell.sync, one.cell.memory) == (sync, memory)), None)


def _words(book: Book, library: str, style: str) -> str:
    return f"{book.label(library)}: {style}"


def _lapi_ways(book: Book) -> list[_Way]:
    puts = book.analysis.of("pingpong", "put", _LAPI)
    gets = book.analysis.of("completion", "get", _LAPI)
    memories = {"allocate": "counters, static memory", "create": "counters, malloc memory"}
    return [
        _Way(_LAPI, _words(book, _LAPI, words), put, get)
        for memory, words in memories.items()
        for put, get in [(_named(puts, "flush", memory), _named(gets, "flush", memory))]
        if put or get
    ]


def _other_ways(book: Book, library: str) -> list[_Way]:
    """The fastest one-sided way of a library, that of the paper, and its messages.

    Gets are measured from one side, as LAPI's; but for the fence, in which the target takes part.
    """
    put = book.analysis.best("pingpong", "put", library)
    get = book.analysis.best("completion", "get", library)
    puts, gets = (book.analysis.of("pingpong", name, library) for name in ("put", "get"))
    found = []
    if best := put or get:
        style = best.cell.style
        if put and get and get.cell.style != style:
            style = f"{style}; get: {get.cell.style}"
        found.append(_Way(library, _words(book, library, style), put, get))
    old = _Way(library, "", _named(puts, *_MPI2), _named(gets, *_MPI2))
    if old.put and old.put is not put:
        words = _words(book, library, old.put.cell.style)
        found.append(_Way(library, words, old.put, old.get))
    return found + [
        _Way(library, _words(book, library, messages.cell.style), messages, None)
        for messages in book.analysis.of("pingpong", "sendrecv", library)
    ]


def _ways(book: Book) -> list[_Way]:
    found = _lapi_ways(book)
    for library in book.analysis.libraries:
        if library != _LAPI and book.analysis.results.kind(library) != "limit":
            found += _other_ways(book, library)
    return found


def _latency(series: Series | None) -> float | None:
    return series.summaries[min(series.summaries)].median if series else None


def _peak(series: Series | None) -> float | None:
    if series is None:
        return None
    return max(bandwidth_mb_s(size, one.median) for size, one in series.summaries.items())


def _rate_cell(value: float | None) -> str:
    return (
        '<td class="n none">–</td>' if value is None else tables.number(format_mb_s(value), value)
    )


def _table(book: Book, ways: list[_Way]) -> str:
    rows = [
        [
            tables.dot(book.looks.get(way.library)) + escape(way.words),
            time_cell(_latency(way.put)), time_cell(_latency(way.get)),
            _rate_cell(_peak(way.put)), _rate_cell(_peak(way.get)),
        ]
        for way in ways
    ]  # fmt: skip
    head = ("", "put latency", "get latency", "peak bandwidth of put", "of get")
    return tables.table(head, rows, 1, sortable=True)


def _paper_table() -> str:
    what = ("put latency", "get latency", "peak bandwidth of put")
    head = ["2003", *(f"{one}, {where}" for where in ("one partition", "two") for one in what)]
    return tables.table(head, [list(map(escape, row)) for row in _PAPER], 1)


def _charts(books: list[tuple[str, Book, list[_Way]]]) -> str:
    """The paper's figures 1 to 4: put and get, bandwidth and time, both places in each."""
    book = books[0][1]
    parts = []
    for operation in ("put", "get"):
        times: list[Curve] = []
        rates: list[Curve] = []
        for number, (place, _, ways) in enumerate(books):
            for way in ways:
                series = way.put if operation == "put" else way.get
                # Between hosts one dash per library is enough; on one host, its styles differ.
                if series is not None:
                    name = f"{way.words}, {place}" if len(books) > 1 else way.words
                    style = [one for one in ways if one.library == way.library].index(way)
                    times.append(curve(book, series, name, 3 * number + style))
                    rates.append(curve(book, series, name, 3 * number + style, bandwidth_mb_s))
        parts.append(book.charts.figure(f"Paper 1, {operation}: bandwidth", SIZE_AXIS, _BANDWIDTH,
                                        rates))  # fmt: skip
        parts.append(book.charts.figure(f"Paper 1, {operation}: time", SIZE_AXIS, TIME_AXIS, times))
    return figures(*parts)


def _comparable(book: Book, one: Series | None, other: Series | None) -> bool:
    if one is None or other is None:
        return False
    return book.analysis.comparable(one, other, min(one.summaries))


def _sentence(place: str, book: Book, ways: list[_Way]) -> str:
    """LAPI's put compared with the fastest one-sided and two-sided ways of an MPI."""
    kinds = book.analysis.results
    lapi = [way for way in ways if way.library == _LAPI and way.put]
    others = [way for way in ways if kinds.kind(way.library) == "mpi" and way.put]
    if not lapi or not others:
        return ""
    best = min(lapi, key=lambda way: _latency(way.put) or 0)
    mine = _latency(best.put) or 1.0
    parts = []
    for what, wanted in (("MPI put", True), ("send/receive", False)):
        chosen = [
            way for way in others
            if way.put and (way.put.cell.operation == "put") == wanted
            and _comparable(book, best.put, way.put)
        ]  # fmt: skip
        if chosen:
            one = min(chosen, key=lambda way: _latency(way.put) or 0)
            value = _latency(one.put) or 1.0
            parts.append(
                f"the fastest {what} ({one.words}) takes {format_ns(value)},"
                f" {format_ratio(value / mine)} times as long"
            )
    size = min(best.put.summaries) if best.put else 0
    if not parts:
        return ""
    return (
        f"LAPI passes {format_bytes(size)} by put and counters in {format_ns(mine)} {place}"
        f" ({best.words.partition(': ')[2]}); {'; '.join(parts)}."
    )


def chapter(here: Book, between: Book | None) -> Chapter | None:
    """The chapter, if a ping-pong was measured."""
    if not any(one.cell.experiment in PAPER1_EXPERIMENTS for one in here.analysis.series):
        return None
    books = [
        (place, book, _ways(book))
        for place, book in zip(_PLACES, (here, between), strict=True)
        if book is not None
    ]
    sentences = [text for text in (_sentence(*one) for one in books) if text]
    html = paragraph(
        "Two processes put data into each other's memory in turn, one to a million integers; half"
        " of a turn is reported. LAPI's target waits for a counter that the put brings along, and"
        " its origin for another. A get of LAPI tells its target before the data have arrived, so"
        " that gets are measured from one side, as the paper had to: whole gets of the same data,"
        " while the target does nothing; but for the fence, half a turn in which both take part. Of"
        " each library the fastest one-sided way, the fence on malloc memory that MPI-2 had, and"
        " its messages. Latencies are those of the smallest size."
    )  # fmt: skip
    for place, book, ways in books:
        html += f"<h3>{escape(place[0].upper() + place[1:])}</h3>" + _table(book, ways)
    html += (
        _charts(books)
        + "<h3>The figures of the paper</h3>"
        + _paper_table()
        + note(
            "Adrian Jackson, Single Sided Communication on HPCx: LAPI and MPI-2, 2003: IBM Power4,"
            " processes within one partition of eight processors (shared memory) and between two"
            " (switch). The paper times whole ping-pongs and does not say whether its latencies"
            " are halves of them. For orientation only: twenty years lie between the machines."
        )
    )
    return Chapter("paper1", "Paper 1: LAPI and MPI, put and get", html, tuple(sentences))

# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidth and message rate."""

from __future__ import annotations

from collections.abc import Sequence

from mobius_instrument.cells import Cell, bandwidth_mb_s, format_bytes, format_mb_s, format_ratio
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    SIZE_AXIS,
    Book,
    Chapter,
    curve,
    figures,
    format_interval,
    listing,
    numbers,
    paragraph,
    shape,
    socket_curves,
)
from mobius_instrument.presentation.charts import Axis, Curve

# All processes, in pairs: on one host, or each pair across hosts.
_PAIRS = ("pairs", "hosts")


def _streams_of(cell: Cell) -> int:
    """Transfers that run at the same time."""
    pairs = int(cell.option("procs", "2")) // 2 if cell.option("partner") in _PAIRS else 1
    return pairs * (2 if cell.option("dir") == "two" else 1)


def _name(book: Book, series: Series) -> str:
    cell = series.cell
    operation = "send/receive" if cell.operation == "sendrecv" else cell.operation
    return f"{book.label(series.library)}: {operation}" + (
        f", {cell.sync}, {cell.memory}" if cell.sync != "none" else ""
    )


def _chart(book: Book, title: str, chosen: list[Series], beside: Sequence[Curve] = ()) -> str:
    curves = []
    for series in chosen:
        streams = _streams_of(series.cell)
        styles = ("put", "get", "sendrecv").index(series.cell.operation)
        curves.append(
            curve(
                book, series, _name(book, series), styles,
                lambda size, ns, streams=streams: bandwidth_mb_s(size, ns) * streams,  # type: ignore[misc]
            )
        )  # fmt: skip
    return book.charts.figure(title, SIZE_AXIS, Axis("bandwidth", "mbs"), [*curves, *beside])


def _best_of_each(chosen: list[Series]) -> list[Series]:
    """The fastest series at the largest size, for each library and operation."""
    best: dict[tuple[str, str], Series] = {}
    for series in chosen:
        key = series.library, series.cell.operation
        size = max(series.summaries)
        other = best.get(key)
        if (
            other is None
            or series.summaries[size].median < other.summaries[max(other.summaries)].median
        ):
            best[key] = series
    return list(best.values())


def _bandwidth(book: Book) -> tuple[str, list[str]]:
    series = [one for one in book.of("bandwidth") if one.summaries]
    touched = [one for one in series if one.cell.option("touch")]
    parts = []
    for direction, words in (("one", "one way"), ("two", "both ways")):
        chosen = [one for one in touched if one.cell.option("dir") == direction]
        beside = socket_curves(book, in_a_row=True, of=bandwidth_mb_s) if direction == "one" else []
        title = f"Bandwidth, {words}: best of each"
        parts.append(_chart(book, title, _best_of_each(chosen), beside))
    for processes in sorted(
        {one.cell.option("procs") for one in series if one.cell.option("procs")}
    ):
        chosen = [one for one in series if one.cell.option("procs") == processes]
        title = f"Bandwidth of all pairs of {processes} processes together"
        parts.append(_chart(book, title, _best_of_each(chosen)))
    one_way = [one for one in touched if one.cell.option("dir") == "one"]
    sentences = []
    beside_socket = ""
    if one_way:
        size = max(max(one.summaries) for one in one_way)
        there = [one for one in one_way if size in one.summaries]
        per_library: dict[str, Series] = {}
        for one in sorted(there, key=lambda one: one.summaries[size].median):
            per_library.setdefault(one.library, one)
        order = list(per_library.values())
        order = [one for one in order if book.analysis.comparable(order[0], one, size)]
        if len(order) > 1:
            first, last = order[0], order[-1]
            rates = [bandwidth_mb_s(size, one.summaries[size].median) for one in (first, last)]
            sentences.append(
                f"At {format_bytes(size)} the most bandwidth is {format_mb_s(rates[0])}"
                f" ({_name(book, first)}), the least of the libraries' best {format_mb_s(rates[1])}"
                f" ({_name(book, last)}): {format_ratio(rates[0] / rates[1])} times apart."
            )
        beside_socket = _beside_socket(book, there, size)
    table = numbers(_bandwidth_table(book, series))
    return figures(*parts) + beside_socket + table, sentences


def _beside_socket(book: Book, one_way: list[Series], size: int) -> str:
    """The bandwidths of a library in the launches that also measured a socket."""
    texts = []
    for socket in book.sockets(in_a_row=True):
        own = [one for one in one_way if one.library == socket.library]
        if not own or size not in socket.summaries:
            continue
        rate = bandwidth_mb_s(size, socket.summaries[size].median)
        parts = []
        for one in _best_of_each(own):
            ratio = book.analysis.ratio(socket, one, size, paired=True)
            parts.append(f"{format_interval(ratio)} times that by {_name(book, one)}")
        texts.append(
            f"At {format_bytes(size)} a plain socket has {format_mb_s(rate)} in a row;"
            f" {listing(parts)}."
        )
    return "".join(map(paragraph, texts))


def _bandwidth_table(book: Book, series: list[Series]) -> str:
    sizes = sorted({size for one in series for size in one.summaries})[-5:]
    rows = []
    for one in series:
        streams = _streams_of(one.cell)
        row = [book.head(one.library), _name(book, one).partition(": ")[2], shape(one.cell)]
        for size in sizes:
            summary = one.summaries.get(size)
            value = bandwidth_mb_s(size, summary.median) * streams if summary else 0.0
            row.append(tables.number(format_mb_s(value) if value else "–", value))
        rows.append(row)
    head = ["library", "transfer", "how", *(format_bytes(size) for size in sizes)]
    return tables.table(head, rows, 3, sortable=True)


def _rates(book: Book) -> tuple[str, list[str]]:
    series = [one for one in book.of("message-rate") if one.summaries]
    curves: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    for one in series:
        cell = one.cell
        processes = float(cell.option("procs", "2"))
        for summary in one.summaries.values():
            rate = 1e9 / summary.median * (processes // 2)
            key = one.library, cell.operation, cell.sync, cell.memory
            curves.setdefault(key, []).append((processes, rate))
    lines = []
    for (library, operation, sync, memory), points in curves.items():
        if len(points) < 2 or sync == "pscw":  # In the table.
            continue
        words = "send/receive" if sync == "none" else f"{operation}, {sync}, {memory}"
        name = f"{book.label(library)}: {words}"
        style = ("put", "get", "sendrecv").index(operation)
        lines.append(Curve(name, library, sorted(points), style, book.is_mobius(library)))
    chart = book.charts.figure(
        "Transfers of 8 bytes per second, all pairs together",
        Axis("processes", "number", log=False), Axis("rate", "rate"), lines,
    )  # fmt: skip
    rows = [
        [
            book.head(one.library), _name(book, one).partition(": ")[2], shape(one.cell, "depth"),
            *(
                tables.number(f"{1e3 / summary.median * _streams_of(one.cell):,.2f} M/s",
                              1e9 / summary.median * _streams_of(one.cell))
                for summary in one.summaries.values()
            ),
        ]
        for one in series
    ]  # fmt: skip
    table = tables.table(("library", "transfer", "how", "rate of all"), rows, 3, sortable=True)
    return figures(chart) + (numbers(table) if rows else ""), []


def chapter(book: Book) -> Chapter | None:
    """The chapter, if one of the experiments was measured."""
    if not book.of("bandwidth") and not book.of("message-rate"):
        return None
    bandwidth, sentences = _bandwidth(book)
    rates, more = _rates(book)
    text = (
        "Many transfers in a row (32, of small ones 64), then one synchronisation that the target"
        " knows of, and its answer. Touched: each transfer of a row has a place of its own, and the"
        " target reads it all (for get: writes it) before it answers, so that all bytes travel."
        " The others go to the same place again and again, as in other programs for this purpose:"
        " data that no process reads may stay in the cache of the process that wrote them."
        " Plots and sentences"
        " are of"
        " touched data. 1 MB/s is 10^6 bytes per second; where several pairs or directions are at"
        " work, the sum of all. Between hosts a plain TCP socket is set beside them: as many"
        " transfers in a row, and one answer."
    )
    return Chapter(
        "streams",
        "Bandwidth and message rate",
        paragraph(text) + bandwidth + "<h3>Message rate</h3>" + rates,
        (*sentences, *more),
    )

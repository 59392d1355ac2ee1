# SPDX-License-Identifier: BSD-3-Clause
"""Table 1 and figures 3 and 4 of paper 5: get and accumulate by shared memory and by messages."""

from __future__ import annotations

from html import escape
from typing import Final

from mobius_instrument.cells import (
    Cell,
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
    Book,
    Chapter,
    curve,
    figures,
    listing,
    note,
    numbers,
    paragraph,
    ratio_cell,
    time_cell,
)
from mobius_instrument.presentation.charts import Axis, Curve

_EXPERIMENT: Final = "protocols"
_BANDWIDTH: Final = Axis("bandwidth", "mbs")
_GET: Final = "protocols:get:flush:allocate:cold=1"
_MESSAGES: Final = "protocols:sendrecv:none:local:cold=1"
_LEAST: Final = 1
_MOST: Final = 512 << 10
_PLACES: Final = ("shared memory", "messages, same host", "between hosts")
_SHAPES: Final = (("double", "contiguous"), ("patch", "strided"))
_FIGURES: Final = {"double": 3, "patch": 4}
_PAPER: Final = (
    ("paper 5: MPI send/receive", 13_200.0, 65.63),
    ("paper 5: ARMCI get", 850.0, 109.64),
)


def _rate(time_ns: float | None) -> str:
    if time_ns is None:
        return '<td class="n none">–</td>'
    value = bandwidth_mb_s(_MOST, time_ns)
    return tables.number(format_mb_s(value), value)


def _table_1(book: Book, libraries: list[str]) -> str:
    rows = []
    for words, text in (("send/receive", _MESSAGES), ("get", _GET)):
        for library in libraries:
            least, most = (book.median(library, text, size) for size in (_LEAST, _MOST))
            if least is not None or most is not None:
                rows.append([f"{book.head(library)}: {words}", time_cell(least), _rate(most)])
    for paper, latency_ns, rate in _PAPER:
        rows.append([paper, time_cell(latency_ns), tables.number(format_mb_s(rate), rate)])
    return tables.table(("interface", "latency, 1 byte", "bandwidth, 512 KB"), rows, 1)


def _series(book: Book, library: str, operation: str, shape: str, by: str) -> Series | None:
    text = f"{_EXPERIMENT}:{operation}:flush:allocate:type={shape}{by}"
    cell = Cell.parse(text)
    return next(
        (
            one
            for one in book.of(_EXPERIMENT, operation)
            if one.library == library and one.cell == cell
        ),
        None,
    )


def _placed(
    here: Book, between: Book | None, library: str, operation: str, shape: str
) -> dict[str, Series]:
    """The series of a library by the path between the processes."""
    found = {
        _PLACES[0]: _series(here, library, operation, shape, ""),
        _PLACES[1]: _series(here, library, operation, shape, ":by=messages"),
        _PLACES[2]: _series(between, library, operation, shape, "") if between else None,
    }
    return {place: one for place, one in found.items() if one is not None}


def _figure(
    here: Book, between: Book | None, libraries: list[str], operation: str, shape: str, words: str
) -> str:
    curves: list[Curve] = []
    for library in libraries:
        for place, series in _placed(here, between, library, operation, shape).items():
            name = f"{here.label(library)}, {place}"
            curves.append(curve(here, series, name, _PLACES.index(place), bandwidth_mb_s))
    title = f"Paper 5, figure {_FIGURES[shape]}: {words} {operation}"
    return here.charts.figure(title, SIZE_AXIS, _BANDWIDTH, curves)


def _rows(here: Book, between: Book | None, libraries: list[str]) -> list[list[str]]:
    rows = []
    for operation in ("get", "accumulate"):
        for shape, words in _SHAPES:
            for library in libraries:
                placed = _placed(here, between, library, operation, shape)
                sizes = sorted({size for one in placed.values() for size in one.summaries})
                for size in sizes:
                    values = [
                        placed[place].summaries[size].median
                        if place in placed and size in placed[place].summaries
                        else None
                        for place in _PLACES
                    ]
                    ratio = values[1] / values[0] if values[0] and values[1] else None
                    rows.append(
                        [operation, words, here.head(library),
                         tables.number(format_bytes(size), size), *map(time_cell, values),
                         ratio_cell(ratio)]
                    )  # fmt: skip
    return rows


def _others(book: Book, libraries: list[str]) -> str:
    """Measurements without a figure in the paper: a small put with completion, and a
    read-modify-write."""
    rows = []
    for library in libraries:
        put = book.median(library, f"{_EXPERIMENT}:put:flush:allocate:type=double", 8)
        update = book.median(library, f"{_EXPERIMENT}:fetch_op:flush:allocate:type=int", 4)
        if put is not None or update is not None:
            rows.append([book.head(library), time_cell(put), time_cell(update)])
    head = ("library", "put of 8 bytes and its completion", "fetch and add")
    return tables.table(head, rows, 1, sortable=True) if rows else ""


def _sentences(book: Book, libraries: list[str]) -> list[str]:
    found = []
    mine = book.median("armci", _GET, _LEAST)
    if mine:
        messages = {
            library: value
            for library in libraries
            if (value := book.median(library, _MESSAGES, _LEAST)) is not None
            and book.comparable(
                ("armci", Cell.parse(_GET)), (library, Cell.parse(_MESSAGES)), _LEAST
            )
        }
        parts = [
            f"{format_ratio(value / mine)} times as long in {book.label(library)}"
            f" ({format_ns(value)})"
            for library, value in messages.items()
        ]
        if parts:
            found.append(
                f"A get of ARMCI on Möbius of one byte takes {format_ns(mine)}; send and receive"
                f" {listing(parts)}; in the paper 16 times."
            )
    for operation in ("get", "accumulate"):
        placed = _placed(book, None, "armci", operation, "patch")
        both = [placed.get(place) for place in _PLACES[:2]]
        if both[0] and both[1]:
            size = max(both[0].summaries.keys() & both[1].summaries.keys(), default=0)
            if size:
                rates = [bandwidth_mb_s(size, one.summaries[size].median) for one in both if one]
                found.append(
                    f"A strided {operation} of {format_bytes(size)} has"
                    f" {format_ratio(rates[0] / rates[1])} times the bandwidth by shared memory"
                    f" ({format_mb_s(rates[0])}) of that by messages on the same host."
                )
    return found


def chapter(here: Book, between: Book | None) -> Chapter | None:
    """The chapter, if the experiment was measured on one host."""
    libraries = here.libraries(_EXPERIMENT)
    if not libraries:
        return None
    drawn = [
        _figure(here, between, libraries, operation, shape, words)
        for shape, words in _SHAPES
        for operation in ("get", "accumulate")
    ]
    head = ("operation", "data", "library", "size", *_PLACES, "messages ÷ shared memory")
    html = "".join(
        (
            "<h3>Table 1</h3>",
            paragraph(
                "One process gets, the other does nothing; of send and receive half a round trip."
                " Each transfer is of another place of 8 MB, so that its data are in no"
                " second-level cache."
            ),
            _table_1(here, libraries),
            "<h3>Figures 3 and 4</h3>",
            paragraph(
                "Get, and accumulate of doubles with its completion; contiguous, and strided: a"
                " square out of a matrix of 1,000 columns. Solid: shared memory. Dashed: the same"
                " processes of this host with no memory in common, so that they send messages:"
                " Möbius and ARMCI on it with each process as a virtual host (mobius run"
                " --virtual-hosts), MPICH and ARMCI-MPI over it with MPIR_CVAR_NOLOCAL=1 and"
                " UCX_TLS=^shm, Intel MPI with I_MPI_FABRICS=ofi; Open MPI's one-sided calls share"
                " memory whatever they are told. Dotted, if measured: between hosts."
            ),
            figures(*drawn),
            numbers(tables.table(head, _rows(here, between, libraries), 3, sortable=True)),
            "<h3>Small updates</h3>",
            _others(here, libraries),
            note(
                "Nieplocha, Ju, Straatsma, A Multiprotocol Communication Support for the Global"
                " Address Space Programming Model on the IBM SP, 2000. The paper gives its figures"
                " 3 and 4 as curves only."
            ),
        )
    )
    title = "Paper 5: shared memory and messages under ARMCI"
    return Chapter("paper5", escape(title), html, tuple(_sentences(here, libraries)))

# SPDX-License-Identifier: BSD-3-Clause
"""Derived datatypes compared with contiguous data and packing by hand; the worst cliff; figure
11."""

from __future__ import annotations

from dataclasses import dataclass

from mobius_instrument.cells import Cell, format_bytes, format_ns, format_ratio
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
    numbers,
    paragraph,
    ratio_cell,
    shape,
)
from mobius_instrument.presentation.charts import Axis, Curve
from mobius_instrument.presentation.colours import HUES


@dataclass(frozen=True)
class Cliff:
    """A datatype that is slower than the other way to move the same bytes."""

    library: str
    cell: Cell
    size: int
    ratio: float
    time_ns: float


def _place(cell: Cell) -> tuple[str, int, int, str]:
    """Orders by kind, then by the numbers' size."""
    stride, block = (int(cell.option(name, "0")) for name in ("stride", "block"))
    return cell.option("type"), stride, block, cell.option("pack")


def _reference(series: list[Series], one: Series) -> Series | None:
    """The series of the same library and style with contiguous bytes."""
    plain = tuple((key, "byte") if key == "type" else ("", "") for key, _ in one.cell.options[:1])
    for other in series:
        same = (other.library, other.cell.operation, other.cell.sync, other.cell.memory) == (
            one.library, one.cell.operation, one.cell.sync, one.cell.memory,
        )  # fmt: skip
        if same and other.cell.options == plain:
            return other
    return None


def _packed(series: list[Series], one: Series) -> Series | None:
    """The same bytes packed by hand, if their places have the same distance."""
    if one.cell.option("stride"):
        return None
    wanted = Cell(
        one.cell.experiment, one.cell.operation, one.cell.sync, one.cell.memory,
        (("type", "vector"), ("block", one.cell.option("block", "8")), ("pack", "hand")),
    )  # fmt: skip
    found = (other for other in series if other.library == one.library and other.cell == wanted)
    return next(found, None)


def _cliffs(series: list[Series], against: str) -> dict[str, Cliff]:
    """Each library's worst case, compared with contiguous bytes or packing by hand."""
    worst: dict[str, Cliff] = {}
    for one in series:
        if one.cell.option("type") in ("byte", "") or one.cell.option("pack"):
            continue
        other = _reference(series, one) if against == "row" else _packed(series, one)
        if other is None:
            continue
        for size, summary in one.summaries.items():
            if size not in other.summaries:
                continue
            ratio = summary.median / other.summaries[size].median
            before = worst.get(one.library)
            if before is None or ratio > before.ratio:
                worst[one.library] = Cliff(one.library, one.cell, size, ratio, summary.median)
    return worst


def _table(book: Book, series: list[Series]) -> str:
    sizes = sorted({size for one in series for size in one.summaries})
    rows = []
    for one in series:
        reference = _reference(series, one)
        row = [book.head(one.library), one.cell.operation, shape(one.cell)]
        for size in sizes:
            there = one.summaries.get(size)
            base = reference.summaries.get(size) if reference else None
            row.append(
                tables.number(format_ns(there.median), there.median)
                if there
                else '<td class="n none">–</td>'
            )
            row.append(ratio_cell(there.median / base.median if there and base else None))
        rows.append(row)
    head = ["library", "transfer", "datatype"]
    for size in sizes:
        head += [format_bytes(size), "÷ row"]
    return numbers(tables.table(head, rows, 3, sortable=True))


def chapter(book: Book) -> Chapter | None:
    """The chapter on datatypes, if they were measured."""
    series = [one for one in book.of("datatypes") if one.summaries]
    if not series:
        return None
    charts = []
    for library in book.libraries("datatypes"):
        mine = [one for one in series if one.library == library and one.cell.operation == "put"]
        curves = []
        hues: dict[Cell, int] = {}
        for one in sorted(mine, key=lambda one: _place(one.cell)):
            reference = _reference(series, one)
            if reference is None or one is reference:
                continue
            points = [
                (size, summary.median / reference.summaries[size].median)
                for size, summary in one.summaries.items()
                if size in reference.summaries
            ]
            hue = hues.setdefault(one.cell.without("pack"), len(hues))
            style = int(one.cell.option("pack") == "hand") + 2 * (hue // len(HUES))
            curves.append(Curve(shape(one.cell), library, points, style, hue=hue))
        title = f"{book.label(library)}: put, time beside the same bytes in a row"
        charts.append(
            book.charts.figure(title, SIZE_AXIS, Axis("ratio", "ratio"), curves, apart=True)
        )
    row, hand = _cliffs(series, "row"), _cliffs(series, "hand")
    sentences, items = [], []
    for library, cliff in sorted(row.items(), key=lambda item: -item[1].ratio):
        packed = hand.get(library)
        text = (
            f"{book.label(library)}: worst is {cliff.cell.operation} of {shape(cliff.cell)} at"
            f" {format_bytes(cliff.size)}: {format_ns(cliff.time_ns)},"
            f" {format_ratio(cliff.ratio)} times as long as the same bytes in a row"
        )
        if packed and packed.ratio > 1.03:
            text += (
                f"; packing by hand beats a datatype by up to {format_ratio(packed.ratio)} times"
                f" ({packed.cell.operation}, {shape(packed.cell)}, {format_bytes(packed.size)})"
            )
        items.append(f"<li>{text}.</li>")
        sentences.append(f"{text}.")
    html = (
        paragraph(
            "Blocks of bytes with gaps, described by a datatype, beside as many bytes in a row, and"
            " beside packing by hand: copied into a buffer, put, copied out. A stride is twice the"
            " block unless stated otherwise."
        )
        + f"<ul>{''.join(items)}</ul>"
        + figures(*charts)
        + _table(book, series)
        + note("÷ row: beside the same bytes in a row, same transfer and synchronisation.")
    )
    return Chapter("datatypes", "Datatypes and their cliffs", html, tuple(sentences))


def multi_op_chapter(book: Book) -> Chapter | None:
    """Figure 11: is a buffer in n transfers merged into one?"""
    series = [one for one in book.of("multi-op") if one.summaries]
    if not series:
        return None
    charts, rows, sentences = [], [], []
    for library in book.libraries("multi-op"):
        mine = [one for one in series if one.library == library]
        for sync in ("pscw", "fence", "flush"):
            chosen = [one for one in mine if (one.cell.operation, one.cell.sync) == ("put", sync)]
            chosen.sort(key=lambda one: int(one.cell.option("n", "1")))
            curves = [
                curve(book, one, f"n = {one.cell.option('n')}", number)
                for number, one in enumerate(chosen)
            ]
            title = f"{book.label(library)}: put in n transfers, {sync}"
            if sync == "pscw":
                charts.append(book.charts.figure(title, SIZE_AXIS, TIME_AXIS, curves, apart=True))
            base = next((one for one in chosen if one.cell.option("n") == "1"), None)
            if base is None:
                continue
            for one in chosen[1:]:
                common = [size for size in one.summaries if size in base.summaries]
                n = int(one.cell.option("n"))
                row = [book.head(library), sync, str(n)]
                for size in sorted(base.summaries):
                    ratio = (
                        one.summaries[size].median / base.summaries[size].median
                        if size in common
                        else None
                    )
                    row.append(ratio_cell(ratio))
                rows.append(row)
            last = chosen[-1]
            common = [size for size in last.summaries if size in base.summaries]
            if sync == "pscw" and common and last is not base:
                size = min(common)
                ratio = last.summaries[size].median / base.summaries[size].median
                verdict = "merges them" if ratio < 1.1 else "does not merge them"
                sentences.append(
                    f"{book.label(library)} {verdict}: {format_bytes(size)} in"
                    f" {last.cell.option('n')} puts take {format_ratio(ratio)} times as long as in"
                    " one."
                )
    sizes = sorted({size for one in series for size in one.summaries})
    head = ["library", "synchronisation", "n", *(format_bytes(size) for size in sizes)]
    html = (
        paragraph(
            "One buffer of the size at hand is put in n neighbouring transfers within one epoch, as"
            " in figure 11 of paper 3. A library that knows the whole schedule could merge them."
        )
        + f"<ul>{''.join(f'<li>{text}</li>' for text in sentences)}</ul>"
        + figures(*charts)
        + numbers(tables.table(head, rows, 3, sortable=True))
        + note("Time of n transfers beside that of one of the same total size.")
    )
    return Chapter("multi-op", "One buffer in n transfers", html)

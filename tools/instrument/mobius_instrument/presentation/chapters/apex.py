# SPDX-License-Identifier: BSD-3-Clause
"""APEX-Map (paper 4): surfaces over K and L, ratio tables as Tables 3 and 4, time breakdown as
figure 5."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from mobius_instrument.cells import format_mb_s, format_ns, format_ratio
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    Book,
    Chapter,
    details,
    figures,
    paragraph,
)
from mobius_instrument.presentation.charts import Axis, Curve

_WORD_BYTES = 8
_UPC = "mobius-upc"
_MOST_SENTENCES = 3
_ABOUT = (
    "Two processes read blocks of L words of a global array, 16 MiB of it with each, at places"
    " that a power law of parameter K draws: K = 1 anywhere, small K near the start of the own"
    " part. Each block is summed up, from a buffer after a get, or where it lies (loads; UPC's go"
    " through pointers to shared). Messages: request, serve, reply in any order, as in the paper's"
    " Table 2. The sum of all passes is compared with that of a sequential run. Bandwidth is of"
    " both processes together; words are of 8 bytes."
)


@dataclass(frozen=True)
class Surface:
    """Times of an access by K and L (in words)."""

    library: str
    operation: str
    sync: str
    memory: str
    times: dict[tuple[float, int], float]
    series: dict[tuple[float, int], Series]

    def rate(self, k: float, words: int, processes: int) -> float:
        """The bandwidth of all processes together, MB/s."""
        return processes * words * _WORD_BYTES * 1e3 / self.times[k, words]


def _surfaces(book: Book) -> list[Surface]:
    found: dict[tuple[str, str, str, str], Surface] = {}
    for one in book.of("apex"):
        cell = one.cell
        key = one.library, cell.operation, cell.sync, cell.memory
        surface = found.setdefault(key, Surface(*key, {}, {}))
        for size, summary in one.summaries.items():
            place = float(cell.option("k", "1")), size // _WORD_BYTES
            surface.times[place] = summary.median
            surface.series[place] = one
    return list(found.values())


def _name(book: Book, surface: Surface) -> str:
    words = {"get": "get", "load": "loads", "isendrecv": "messages"}
    return f"{book.label(surface.library)}, {words.get(surface.operation, surface.operation)}"


def _colour(position: float) -> str:
    """From cold to warm, readable on light and dark paper."""
    hue = 230 - 200 * min(max(position, 0.0), 1.0)
    return f"hsl({hue:.0f} 60% 50% / 0.32)"


def _heat(rows: list[int], columns: list[float], values: dict[tuple[float, int], float],
          shown: str) -> str:  # fmt: skip
    """A table of L by K, coloured by the logarithm of the value."""
    known = [value for value in values.values() if value > 0]
    if not known:
        return ""
    low, high = math.log(min(known)), math.log(max(known))
    body = []
    for words in rows:
        cells = []
        for k in columns:
            value = values.get((k, words))
            if value is None:
                cells.append('<td class="n none">–</td>')
                continue
            position = (math.log(value) - low) / (high - low) if high > low else 0.5
            text = format_mb_s(value) if shown == "rate" else format_ratio(value)
            cells.append(
                f'<td class="n" style="background:{_colour(position)}"'
                f' data-v="{value:.5g}">{text}</td>'
            )
        body.append(f'<tr><td class="n">{words}</td>{"".join(cells)}</tr>')
    head = "".join(f'<th class="n">K = {k:g}</th>' for k in columns)
    return (
        '<div class="scroll"><table class="heat"><thead><tr><th class="n">L'
        f" (words)</th>{head}</tr>"
        f"</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _contour(
    title: str,
    rows: list[int],
    columns: list[float],
    values: dict[tuple[float, int], float],
    limits: tuple[float, float],
) -> str:
    """Contours as in figures 2 to 4, as SVG; empty if a point is missing. `limits` are those of all
    plots that are compared, so that a colour means the same bandwidth in each."""
    if (
        len(rows) < 2
        or len(columns) < 2
        or any((k, n) not in values for k in columns for n in rows)
    ):
        return ""
    with mpl.rc_context({"svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 9.0,
                         "svg.hashsalt": title}):  # fmt: skip
        figure = Figure(figsize=(5.2, 3.7))
        axes = figure.add_axes((0.13, 0.14, 0.63, 0.74))
        grid = [[math.log10(max(values[k, n], 1e-9)) for n in rows] for k in columns]
        low, high = (math.log10(max(limit, 1e-9)) for limit in limits)
        levels = [low + (high - low) * step / 16 for step in range(17)]
        filled = axes.contourf(rows, columns, grid, levels=levels, cmap="viridis", extend="both")
        axes.contour(rows, columns, grid, levels=levels[::2], colors="white", linewidths=0.5)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("L, words of a block")
        axes.set_ylabel("K")
        axes.set_title(title, fontsize=9.5, loc="left")
        bar = figure.colorbar(filled, cax=figure.add_axes((0.79, 0.14, 0.03, 0.74)))
        powers = range(math.ceil(low), math.floor(high) + 1)
        bar.set_ticks(list(powers), labels=[f"{10**power:,g}" for power in powers])
        bar.set_label("MB/s")
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None},
                       transparent=True)  # fmt: skip
    # Black stands for the colour of text, on light and dark paper.
    svg = out.getvalue().replace("#000000", "currentColor")
    svg = svg[svg.index("<svg") :].replace(
        "<svg", f'<svg role="img" fill="currentColor" aria-label="{escape(title)}"', 1
    )
    prefix = "".join(letter if letter.isalnum() else "-" for letter in title)
    svg = svg.replace('id="', f'id="{prefix}-').replace("url(#", f"url(#{prefix}-")
    svg = svg.replace('href="#', f'href="#{prefix}-')
    return f"<figure>{svg}</figure>"


def _ratio_section(book: Book, first: Surface, second: Surface) -> tuple[str, str]:
    """The first library's bandwidth compared with the second's, with a sentence."""
    ratios = {
        place: second.times[place] / time for place, time in first.times.items()
        if place in second.times
        and book.analysis.comparable(
            first.series[place], second.series[place], place[1] * _WORD_BYTES
        )
    }  # fmt: skip
    if not ratios:
        return "", ""
    rows, columns = sorted({n for _, n in ratios}), sorted({k for k, _ in ratios})
    title = f"{_name(book, first)} beside {_name(book, second)}"
    best = max(ratios, key=lambda place: ratios[place])
    worst = min(ratios, key=lambda place: ratios[place])
    mean = math.exp(sum(math.log(ratio) for ratio in ratios.values()) / len(ratios))
    sentence = (
        f"APEX-Map: {_name(book, first)} has {format_ratio(mean)} times the bandwidth of"
        f" {_name(book, second)} (geometric mean), from {format_ratio(ratios[worst])} to"
        f" {format_ratio(ratios[best])}, most at K = {best[0]:g}, L = {best[1]} words."
    )
    return details(title, _heat(rows, columns, ratios, "ratio")), sentence


def _papers_ratios(book: Book, surfaces: list[Surface]) -> tuple[list[str], list[str]]:
    """Tables 3 and 4 of the paper: UPC's copies beside the gets of each OpenSHMEM, and its loads
    beside its copies. Sections and sentences."""
    upc = {one.operation: one for one in surfaces if one.library == _UPC}
    pairs = []
    if "get" in upc:
        pairs = [
            (upc["get"], one) for one in surfaces
            if "shmem" in one.library and one.operation == "get"
        ]  # fmt: skip
        pairs += [(upc["load"], upc["get"])] if "load" in upc else []
    found = [_ratio_section(book, first, second) for first, second in pairs]
    return [html for html, _ in found], [sentence for _, sentence in found if sentence]


def _breakdown(book: Book) -> str:
    """The share of time that each rank works instead of waiting for the others (figure 5)."""
    rows = []
    for (library, cell), facts in book.facts.items():
        if cell.experiment != "apex" or cell.option("k") not in ("1", "0.001"):
            continue
        for fact in facts[:: max(1, len(facts) // 3)]:
            size, _, text = fact.detail.partition(": ")
            if size.isdigit():
                rows.append([book.head(library), cell.operation, cell.option("k"),
                             str(int(size) // _WORD_BYTES), escape(text)])  # fmt: skip
    head = ("library", "transfer", "K", "L (words)", "working, of all its time")
    return tables.table(head, rows, 9) if rows else ""


def chapter(book: Book) -> Chapter | None:
    """The chapter, if APEX-Map was measured."""
    surfaces = _surfaces(book)
    if not surfaces:
        return None
    rows = sorted({n for surface in surfaces for _, n in surface.times})
    columns = sorted({k for surface in surfaces for k, _ in surface.times})
    processes = 2
    parts, contours, curves = [], [], []
    every = [one.rate(*place, processes) for one in surfaces for place in one.times]
    limits = min(every), max(every)
    for surface in surfaces:
        rates = {place: surface.rate(*place, processes) for place in surface.times}
        parts.append(details(f"{_name(book, surface)}: MB/s of all processes",
                             _heat(rows, columns, rates, "rate")))  # fmt: skip
        contours.append(_contour(f"{_name(book, surface)}: MB/s", rows, columns, rates,
                                 limits))  # fmt: skip
        style = ("get", "load", "isendrecv").index(surface.operation)
        points = [
            (n, surface.times[columns[-1], n]) for n in rows if (columns[-1], n) in surface.times
        ]
        curves.append(Curve(_name(book, surface), surface.library, points, style,
                            book.is_mobius(surface.library)))  # fmt: skip
    chart = book.charts.figure(
        f"Time of one access at K = {columns[-1]:g}", Axis("L, words", "number"),
        Axis("time", "ns"), curves,
    )  # fmt: skip
    ratio_parts, sentences = _papers_ratios(book, surfaces)
    mine = [surface for surface in surfaces if book.is_mobius(surface.library)]
    others = [
        surface for surface in surfaces
        if not book.is_mobius(surface.library) and surface.library != _UPC
    ]  # fmt: skip
    for first in mine:
        for second in [
            *[one for one in mine if one is not first and first.operation == "load"],
            *others,
        ]:
            if (first.operation, second.operation) in (("get", "load"),):
                continue
            html, sentence = _ratio_section(book, first, second)
            ratio_parts.append(html)
            if sentence and first.operation == "get" and second.operation in ("get", "isendrecv"):
                sentences.append(sentence)
    for library in dict.fromkeys(surface.library for surface in others):
        by = {surface.operation: surface for surface in others if surface.library == library}
        if "get" in by and "isendrecv" in by:
            html, sentence = _ratio_section(book, by["get"], by["isendrecv"])
            ratio_parts.append(html)
            sentences.append(sentence)
    fastest = min(surfaces, key=lambda one: one.times.get((columns[-1], rows[0]), math.inf))
    if (columns[-1], rows[0]) in fastest.times:
        sentences.insert(
            0,
            f"Reading single words anywhere (K = {columns[-1]:g}) is fastest by"
            f" {_name(book, fastest)}:"
            f" {format_ns(fastest.times[columns[-1], rows[0]])} each.",
        )
    shown = [paragraph(sentence) for sentence in sentences[:_MOST_SENTENCES]]
    html_text = (
        figures(chart, contours[0])
        + "".join(shown)
        + details("More surfaces, as figures 2 to 4", figures(*contours[1:]))
        + details("Surfaces in numbers", "".join(parts))
        + details("Ratios, as in Tables 3 and 4", "".join(ratio_parts))
        + details("Working and waiting, as figure 5", _breakdown(book))
        + f"<h4>What was measured</h4>{paragraph(_ABOUT)}"
    )
    return Chapter("apex", "APEX-Map", html_text, tuple(sentences))

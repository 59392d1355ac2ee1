# SPDX-License-Identifier: BSD-3-Clause
"""Log-log plots of time and bandwidth against size, as SVG and PNG files and as SVG for the page.

In the page every colour is a CSS variable, so that one drawing serves light and dark paper, and and
text stays text.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from mobius_instrument.cells import MESSAGES, bandwidth_mb_s, format_bytes
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.presentation import colours
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.colours import Look, Paint
from mobius_instrument.stats import Summary

Quantity = Literal["time", "bandwidth"]

_WIDTH_IN: Final = 7.2
_HEIGHT_IN: Final = 4.5
# Where the axes begin, a share of the figure's width, and the lines' labels, a share of the axes'.
_LEFT: Final = 0.095
_LABELS_AT: Final = 1.045
_FONT_PT: Final = 10.0
_FAMILY: Final = "DejaVu Sans"
_PAGE_FAMILY: Final = "system-ui, sans-serif"
_PNG_DPI: Final = 160


@dataclass(frozen=True)
class Line:
    """A series in a plot. `label` is at its right end."""

    series: Series
    label: str
    paint: Paint
    marker: str
    dashed: bool = False
    strong: bool = False


@dataclass(frozen=True)
class Plot:
    """A drawing: `svg` is for the page, files of `name` are in the plots folder."""

    name: str
    title: str
    svg: str
    png: bytes
    file_svg: str


def best_lines(analysis: Analysis, experiment: str, operation: str) -> list[Line]:
    """The best series of each library, the limit, and the fastest two-sided messages."""
    kinds = {name: analysis.results.kind(name) for name in analysis.libraries}
    all_looks = library_looks(analysis)
    lines = []
    for name in analysis.libraries:
        wanted = operation
        if kinds[name] == "limit":
            wanted = "line" if experiment == "pingpong" else "copy"
        series = analysis.best(experiment, wanted, name)
        if series is None:
            continue
        look = all_looks[name]
        label = _short(analysis.results.label(name))
        if kinds[name] == "limit":
            label = "limit: cache line" if wanted == "line" else "limit: memcpy"
        lines.append(
            Line(
                series, label, look.paint, look.marker,
                dashed=kinds[name] == "limit", strong=kinds[name] == "mobius",
            )
        )  # fmt: skip
    messages = [
        series
        for name in analysis.libraries
        if (series := analysis.best(experiment, "sendrecv", name))
    ]
    if messages:
        common = set.intersection(*(set(series.summaries) for series in messages))
        fastest = min(messages, key=lambda series: series.geometric_mean(common))
        lines.append(Line(fastest, "send/receive", colours.MUTED, "", dashed=True))
    return lines if any(line.series.cell.operation == operation for line in lines) else []


def style_lines(analysis: Analysis, library: str, experiment: str, operation: str) -> list[Line]:
    """Every series of one library: colour is synchronisation, dashes are malloc memory."""
    markers = {"flush": "o", "fence": "s", "pscw": "^", "lock": "D", "none": ""}
    lines = []
    for series in analysis.of(experiment, library=library):
        cell = series.cell
        if cell.operation not in (operation, *MESSAGES):
            continue
        label = cell.operation_words if cell.operation in MESSAGES else cell.sync
        if cell.memory == "create":
            label += ", malloc"
        paint = colours.SYNC_PAINTS.get(cell.sync, colours.MUTED)
        lines.append(
            Line(series, label, paint, markers.get(cell.sync, "v"), cell.memory == "create")
        )
    return lines if any(line.series.cell.operation == operation for line in lines) else []


def library_looks(analysis: Analysis) -> dict[str, Look]:
    """Colour and marker of every library."""
    names = dict.fromkeys([*analysis.results.libraries, *analysis.libraries])
    return colours.looks({name: analysis.results.kind(name) for name in names})


def _short(label: str) -> str:
    return label.replace(" (PyPI)", "")


def draw(
    name: str, title: str, lines: list[Line], quantity: Quantity, height_in: float = _HEIGHT_IN
) -> Plot:
    """Draws one plot, for the page and as files."""
    settings: dict[str, Any] = {
        "font.family": _FAMILY,
        "font.size": _FONT_PT,
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "path.simplify": False,
    }
    with mpl.rc_context(settings):  # type: ignore[arg-type,unused-ignore]
        figure = Figure(figsize=(_WIDTH_IN, height_in))
        # The labels below and the title above take the same room at any height.
        bottom, top = 0.115 * _HEIGHT_IN / height_in, 1 - 0.09 * _HEIGHT_IN / height_in
        axes = figure.add_axes((_LEFT, bottom, _axes_width(lines), top - bottom))
        draw_on(axes, lines, quantity, height_in * (top - bottom))
        # Not an axis title: placing one measures every tick label again.
        title_at = 1 - 0.055 * _HEIGHT_IN / height_in
        figure.text(_LEFT, title_at, title, fontsize=_FONT_PT + 1, color=colours.FOREGROUND.light)
        axes.patch.set_alpha(0)
        png = io.BytesIO()
        # The default level 6 takes a third longer for a hundredth fewer bytes.
        figure.savefig(
            png, format="png", dpi=_PNG_DPI, facecolor="white", pil_kwargs={"compress_level": 4}
        )
        svg = io.StringIO()
        figure.savefig(
            svg, format="svg", metadata={"Date": None, "Creator": None}, facecolor="none"
        )
        text = svg.getvalue()
        return Plot(name, title, _for_page(text, name, title), png.getvalue(), _on_white(text))


def _axes_width(lines: list[Line]) -> float:
    """A share of the figure's width: what the lines' labels leave, in a browser's wider letters."""
    longest = max((len(line.label) for line in lines), default=0)
    return min(0.635, (1 - _LEFT - 0.0108 * longest) / _LABELS_AT)


def draw_on(axes: Axes, lines: list[Line], quantity: Quantity, height_in: float) -> None:
    """Draws the lines of a plot into axes that are so many inches high."""
    _draw_lines(axes, lines, quantity)
    _dress(axes, lines, quantity, height_in)


def _on_white(svg: str) -> str:
    return re.sub(
        r"(<svg[^>]*>)", r'\1<rect width="100%" height="100%" fill="white"/>', svg, count=1
    )


def _values(
    series: Series, quantity: Quantity
) -> tuple[list[int], list[float], list[float], list[float]]:
    """Sizes, value, lower and upper bound of the interval."""

    def of(pick: Callable[[Summary], float]) -> list[float]:
        values = {size: pick(summary) for size, summary in series.summaries.items()}
        if quantity == "time":
            return list(values.values())
        return [bandwidth_mb_s(size, value) for size, value in values.items()]

    low, high = of(lambda summary: summary.low), of(lambda summary: summary.high)
    if quantity == "bandwidth":
        low, high = high, low
    return list(series.summaries), of(lambda summary: summary.median), low, high


def _draw_lines(axes: Axes, lines: list[Line], quantity: Quantity) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for number, line in enumerate(lines):
        sizes, middle, low, high = _values(line.series, quantity)
        colour = line.paint.light
        order = 10 + number + (20 if line.strong else 0)
        axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0, zorder=order)
        axes.plot(
            sizes, middle, color=colour, marker=line.marker or None, markersize=4.2,
            linewidth=2.4 if line.strong else 1.5, zorder=order,
            linestyle=(0, (4, 2.2)) if line.dashed else "-",
            markerfacecolor=colour, markeredgewidth=0,
        )  # fmt: skip
    axes.margins(x=0.02, y=0.06)
    # Fixed here: the position of a label depends on where its line ends on paper.
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())


def _dress(axes: Axes, lines: list[Line], quantity: Quantity, height_in: float) -> None:
    sizes = sorted({size for line in lines for size in line.series.summaries})
    axes.xaxis.set_major_locator(FixedLocator(_size_ticks(sizes[0], sizes[-1])))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(round(value))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=20))
    axes.yaxis.set_minor_locator(NullLocator())
    shown = _time_tick if quantity == "time" else _bandwidth_tick
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))
    axes.grid(True, which="major", color=colours.GRID.light, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(colours.MUTED.light)
    axes.tick_params(which="both", length=0, colors=colours.MUTED.light)
    axes.tick_params(axis="x", which="major", length=3)
    axes.set_xlabel("size", color=colours.MUTED.light)
    # Placing a label measures every tick label again, which is useless for an empty label.
    axes.yaxis.set_label_coords(0, 0.5)
    _label_ends(axes, lines, quantity, height_in)


def _size_ticks(low: int, high: int) -> list[int]:
    """Powers of two, a factor of 8 apart over wide ranges, so that labels never touch."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = max(1, math.ceil((last - first) / 7))
    return [1 << power for power in range(first, last + 1, step)] or [low]


def _time_tick(value_ns: float) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value_ns >= factor:
            return f"{value_ns / factor:g} {unit}"
    return f"{value_ns:g} ns"


def _bandwidth_tick(value: float) -> str:
    return f"{value / 1000:g} GB/s" if value >= 1000 else f"{value:g} MB/s"


def _label_ends(axes: Axes, lines: list[Line], quantity: Quantity, height_in: float) -> None:
    """Labels at the right ends, moved apart so that they do not touch."""
    ends = []
    for line in lines:
        sizes, middle, *_ = _values(line.series, quantity)
        _, y = axes.transAxes.inverted().transform(
            axes.transData.transform((sizes[-1], middle[-1]))
        )
        ends.append((float(y), line))
    ends.sort(key=lambda end: end[0])
    distance = 1.45 * _FONT_PT / 72 / height_in
    places = spread([y for y, _ in ends], distance)
    # Where many lines end together at the top, their labels go down from there.
    places = [min(place, 1 - distance * above) for above, place in enumerate(reversed(places))][
        ::-1
    ]
    for place, (y, line) in zip(places, ends, strict=True):
        colour = line.paint.light
        axes.annotate(
            line.label, (_LABELS_AT, place), xycoords="axes fraction", va="center", color=colour,
            fontweight="bold" if line.strong else "normal", fontsize=_FONT_PT - 0.5,
        )  # fmt: skip
        axes.plot(
            [1.0, 1.035], [y, place], transform=axes.transAxes, clip_on=False, color=colour,
            linewidth=0.9, linestyle="-", alpha=0.8,
        )  # fmt: skip


def spread(wanted: list[float], distance: float) -> list[float]:
    """Ascending places at least `distance` apart, near the wanted ones (ascending) and their mean.

    Neighbours that would touch become a block around the mean of what they want; blocks that then
    touch are joined.
    """
    blocks: list[tuple[float, int]] = []
    for place in wanted:
        centre, count = place, 1
        while blocks and centre - blocks[-1][0] < distance * (count + blocks[-1][1]) / 2:
            before, members = blocks.pop()
            centre = (centre * count + before * members) / (count + members)
            count += members
        blocks.append((centre, count))
    return [
        centre + distance * (number - (count - 1) / 2)
        for centre, count in blocks
        for number in range(count)
    ]


def _for_page(svg: str, name: str, title: str) -> str:
    """The SVG without prologue and fixed size, with colours as variables and unique names."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    for paint in colours.ALL:
        svg = re.sub(re.escape(paint.light), f"var(--{paint.role})", svg, flags=re.I)
    svg = svg.replace(f"'{_FAMILY}'", _PAGE_FAMILY)
    # Six decimals of a point make a third of the page's size and are not visible.
    svg = re.sub(r"(\d+\.\d\d)\d+", r"\1", svg)
    return re.sub(r">\s+<", "><", svg)


def make_folder(folder: Path) -> None:
    """Makes the folder of plots and charts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstrumentError(f"cannot write {folder}: {system_reason(error)}") from error


def save(plots: list[Plot], folder: Path) -> None:
    """Writes the files of all plots."""
    try:
        for plot in plots:
            (folder / f"{plot.name}.png").write_bytes(plot.png)
            (folder / f"{plot.name}.svg").write_text(plot.file_svg, encoding="utf-8")
    except OSError as error:
        raise InstrumentError(f"cannot write {folder}: {system_reason(error)}") from error

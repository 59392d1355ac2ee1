# SPDX-License-Identifier: BSD-3-Clause
"""Interactive plots: a figure with its data as JSON, which charts.js draws. Each is also written as
columns and a gnuplot script, so that no number is only a picture."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, Final

from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.presentation.colours import HUES, Look

# The n-th style of one library, distinguishable without colour.
_DASHES: Final = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2 1 2")


@dataclass(frozen=True)
class Axis:
    """The axes' format; `format` is a name in charts.js."""

    label: str
    format: str
    log: bool = True
    base: int = 2


@dataclass(frozen=True)
class Curve:
    """Points are x, y and, if known, the interval of y. `hue` is for charts of one library: curves
    with the same hue have one colour and different styles."""

    name: str
    library: str
    points: Sequence[Sequence[float]]
    style: int = 0
    strong: bool = False
    hue: int | None = None


@dataclass
class Charts:
    """All charts of a page: makes their figures and keeps their data for files."""

    looks: dict[str, Look]
    # Precedes the title of each chart.
    prefix: str = ""
    made: list[tuple[str, str, Axis, Axis, list[Curve]]] = field(default_factory=list)

    def figure(
        self, title: str, x: Axis, y: Axis, curves: Sequence[Curve], apart: bool = False
    ) -> str:
        """HTML of a chart; empty without points.

        `apart` is for curves of one library, whose colour would tell nothing: each gets its own.
        """
        shown = [curve for curve in curves if curve.points]
        if not shown:
            return ""
        title = self.prefix + title
        name = _file_name(f"{len(self.made) + 1:02d}-{title}")
        self.made.append((name, title, x, y, shown))
        data = {
            "title": title,
            "x": x.__dict__,
            "y": y.__dict__,
            "series": [self._series(curve) for curve in (_apart(shown) if apart else shown)],
        }
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        return (
            f'<figure class="chart" id="{name}"><figcaption class="title">{escape(title)}'
            f'</figcaption><div class="plot"><noscript>The numbers are in'
            f' <a href="plots/{name}.dat">{name}.dat</a>.</noscript></div>'
            f'<div class="keys"></div><script type="application/json">{text}</script>'
            f'<figcaption><a href="plots/{name}.dat">columns</a>'
            f' <a href="plots/{name}.gp">gnuplot</a></figcaption></figure>'
        )

    def _series(self, curve: Curve) -> dict[str, Any]:
        look = self.looks.get(curve.library)
        role = look.paint.role if look else "ink"
        return {
            "name": curve.name,
            "library": curve.library,
            "role": role if curve.hue is None else HUES[curve.hue % len(HUES)].role,
            "dash": _DASHES[curve.style % len(_DASHES)],
            "strong": curve.strong,
            "points": [[_short(value) for value in point] for point in curve.points],
        }

    def save(self, folder: Path) -> None:
        """Columns and a gnuplot script of every chart."""
        try:
            for name, title, x, y, curves in self.made:
                (folder / f"{name}.dat").write_text(_columns(curves, x, y), encoding="utf-8")
                script = _script(name, title, x, y, curves)
                (folder / f"{name}.gp").write_text(script, encoding="utf-8")
        except OSError as error:
            raise InstrumentError(f"cannot write {folder}: {system_reason(error)}") from error


def _apart(curves: Sequence[Curve]) -> list[Curve]:
    """The curves, with a hue for each that has none."""
    return [
        curve if curve.hue is not None else replace(curve, hue=number, style=number // len(HUES))
        for number, curve in enumerate(curves)
    ]


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _file_name(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]


def _columns(curves: Sequence[Curve], x: Axis, y: Axis) -> str:
    """Gnuplot's blocks: one per curve, two empty lines apart."""
    blocks = []
    for curve in curves:
        rows = "\n".join(" ".join(f"{value:.8g}" for value in point) for point in curve.points)
        blocks.append(f"# {curve.name}\n# {x.label}, {y.label}, low, high\n{rows}\n")
    return "\n\n".join(blocks)


def _script(name: str, title: str, x: Axis, y: Axis, curves: Sequence[Curve]) -> str:
    logs = "".join(f"set logscale {axis} {base}\n" for axis, base, log in (
        ("x", x.base, x.log), ("y", 10, y.log)
    ) if log)  # fmt: skip
    plots = ", \\\n  ".join(
        f"'{name}.dat' index {number} using 1:2 with linespoints title {json.dumps(curve.name)}"
        for number, curve in enumerate(curves)
    )
    return (
        f"# gnuplot {name}.gp makes {name}.png\nset terminal pngcairo size 1200,800\n"
        f"set output '{name}.png'\nset title {json.dumps(title)}\nset xlabel"
        f" {json.dumps(x.label)}\n"
        f"set ylabel {json.dumps(y.label)}\nset key outside\nset grid\n{logs}plot {plots}\n"
    )

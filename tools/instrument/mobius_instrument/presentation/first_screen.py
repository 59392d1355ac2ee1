# SPDX-License-Identifier: BSD-3-Clause
"""What a reader sees without scrolling: a verdict, a table of scores, two pictures. Also as
Markdown and as one picture, to paste elsewhere."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from mobius_instrument.cells import format_bytes, format_ns, format_ratio
from mobius_instrument.errors import InstrumentError, system_reason
from mobius_instrument.presentation import plots, tables
from mobius_instrument.presentation.analysis import Analysis
from mobius_instrument.presentation.colours import FOREGROUND, MUTED, Look
from mobius_instrument.presentation.findings import short_label
from mobius_instrument.presentation.plots import Line, Plot
from mobius_instrument.presentation.scores import Question, Score, ask, verdict

SUMMARY_NAME: Final = "summary.md"
PICTURE_NAME: Final = "summary.png"
SAMPLES: Final = "samples"

_PICTURES: Final = (("put", "Put and its completion"), ("get", "Get and its completion"))
_PICTURE_HEIGHT_IN: Final = 3.3
# Ratios to the best time up to which a cell has this class, and the colour of it on paper.
_GRADES: Final = ((1.1, "best", "#cdebdc"), (2.0, "near", "#e6f3d8"), (5.0, "far", "#fdeecb"))
_WORST: Final = ("worst", "#f9d9d3")
_FAILED: Final = ("failed", "#eceff3")


@dataclass(frozen=True)
class FirstScreen:
    """The scores, their pictures, and what was said about both."""

    analysis: Analysis
    looks: dict[str, Look]
    questions: list[Question]
    sentences: list[str]
    pictures: list[Plot]

    @property
    def libraries(self) -> list[str]:
        """The libraries that answer something, in the order of the run."""
        return [
            name
            for name in self.analysis.libraries
            if any(_says_something(question.scores.get(name)) for question in self.questions)
        ]


def _says_something(score: Score | None) -> bool:
    return score is not None and (score.time_ns is not None or bool(score.failure))


def look_at(analysis: Analysis, looks: dict[str, Look]) -> FirstScreen:
    """Everything of the first screen; empty parts where the experiments were not measured."""
    questions = ask(analysis)
    pictures = []
    for operation, title in _PICTURES:
        lines = _lines(analysis, operation)
        if lines:
            name = f"first-{operation}"
            pictures.append(plots.draw(name, f"{title}: time", lines, "time", _PICTURE_HEIGHT_IN))
    return FirstScreen(analysis, looks, questions, verdict(analysis, questions), pictures)


def _lines(analysis: Analysis, operation: str) -> list[Line]:
    """The lines of a picture, with the names of the table."""
    return [
        line if line.dashed else replace(line, label=short_label(analysis, line.series.library))
        for line in plots.best_lines(analysis, "completion", operation)
    ]


def html(screen: FirstScreen) -> str:
    """The verdict, the table and the pictures."""
    lines = "<br> ".join(map(escape, screen.sentences))
    parts = [f'<p class="lead">{lines}</p>'] if screen.sentences else []
    if screen.questions:
        parts.append(_table(screen))
    if screen.pictures:
        drawn = "".join(f"<figure>{plot.svg}</figure>" for plot in screen.pictures)
        parts.append(f'<div class="figures first">{drawn}</div>')
    return "".join(parts)


def _table(screen: FirstScreen) -> str:
    libraries = screen.libraries
    head = [f'<th class="n">{_dotted(screen, name)}</th>' for name in libraries]
    rows = []
    for number, question in enumerate(screen.questions):
        row = [f'<td><a href="#{question.section}">{escape(question.words)}</a></td>']
        row += [_cell(question, number, name) for name in libraries]
        rows.append(row)
    table = tables.table(["", *head], rows, 1)
    return (
        f'<div class="scores">{table}</div><p class="note">Colour: time ÷ the shortest of the row.'
        " ✗: wrong data, a crash, an endless wait or, where the target computes, one that lasts as"
        " long as its computation. The time where the target computes is that of the slowest"
        " of all operations, synchronisations and memories. Each library with its fastest"
        " synchronisation and memory; a click shows the samples.</p>"
    )


def _dotted(screen: FirstScreen, library: str) -> str:
    """The library's name behind its spot, which stays with the first word."""
    first, _, rest = short_label(screen.analysis, library).partition(" ")
    dot = tables.dot(screen.looks.get(library))
    return f"<span>{dot}{escape(first)}</span> {escape(rest)}"


def _cell(question: Question, number: int, library: str) -> str:
    score = question.scores.get(library)
    if score is None or not _says_something(score):
        return '<td class="n none">–</td>'
    if score.time_ns is None:
        mark = "" if score.failure == "refuses" else "✗ "
        return f'<td class="n failed">{mark}{escape(score.failure)}</td>'
    kind, _ = _grade(question, score)
    shown = escape(format_ns(score.time_ns))
    if score.series is not None:
        shown = f'<a href="{SAMPLES}/{_samples_name(number, library)}">{shown}</a>'
    if score.faults:
        shown += f' <span class="fault" title="{_faults(score)}">✗</span>'
    ratio = f"{format_ratio(score.time_ns / (question.best_ns or score.time_ns))} × the shortest"
    title = escape("; ".join(filter(None, [ratio, score.remark])), quote=True)
    return f'<td class="n {kind}" data-v="{score.time_ns:.6g}" title="{title}">{shown}</td>'


def _faults(score: Score) -> str:
    ways = "1 way" if score.faults == 1 else f"{score.faults} ways"
    return f"{ways} to do this, at some size: {score.fault}"


def _grade(question: Question, score: Score) -> tuple[str, str]:
    """The class and the colour of a cell."""
    if score.time_ns is None or not question.best_ns:
        return _FAILED
    ratio = score.time_ns / question.best_ns
    return next(((kind, fill) for most, kind, fill in _GRADES if ratio <= most), _WORST)


def _samples_name(number: int, library: str) -> str:
    return f"{number + 1:02d}-{library}.txt"


def save(screen: FirstScreen, folder: Path, title: str, machine: str) -> None:
    """Writes the summary as Markdown and as a picture, and the samples behind the scores."""
    try:
        _save_samples(screen, folder / SAMPLES)
        if screen.questions:
            text = _markdown(screen, title, machine)
            (folder / SUMMARY_NAME).write_text(text, encoding="utf-8")
            (folder / PICTURE_NAME).write_bytes(_picture(screen, title, machine))
    except OSError as error:
        raise InstrumentError(f"cannot write {folder}: {system_reason(error)}") from error


def _save_samples(screen: FirstScreen, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results = screen.analysis.results
    for number, question in enumerate(screen.questions):
        for library, score in question.scores.items():
            if score.series is None:
                continue
            launches = results.one_way(score.series.key, question.size)
            text = (
                f"# {results.label(library)}: {question.words}\n# {score.series.cell},"
                f" {format_bytes(question.size)}, nanoseconds; a line for each launch or round\n"
            )
            text += "".join(
                " ".join(f"{value:.6g}" for value in launch) + "\n" for launch in launches
            )
            (folder / _samples_name(number, library)).write_text(text, encoding="utf-8")


def _plain(score: Score | None) -> str:
    if score is None or not _says_something(score):
        return "–"
    if score.time_ns is None:
        return ("" if score.failure == "refuses" else "✗ ") + score.failure
    return format_ns(score.time_ns) + (" ✗" if score.faults else "")


def _markdown(screen: FirstScreen, title: str, machine: str) -> str:
    labels = [short_label(screen.analysis, name) for name in screen.libraries]
    lines = [
        f"# {title}", "", machine, "", *screen.sentences, "",
        f"| | {' | '.join(labels)} |", f"|---|{'---:|' * len(labels)}",
    ]  # fmt: skip
    for question in screen.questions:
        cells = []
        for name in screen.libraries:
            score = question.scores.get(name)
            shown = _plain(score)
            cells.append(f"**{shown}**" if name in question.best else shown)
        lines.append(f"| {question.words} | {' | '.join(cells)} |")
    lines += ["", f"![the same as a picture]({PICTURE_NAME})", ""]
    return "\n".join(lines)


_WIDTH_IN: Final = 13.0
_DPI: Final = 110
_LINE_IN: Final = 0.27


def _picture(screen: FirstScreen, title: str, machine: str) -> bytes:
    """The first screen as PNG."""
    table_in = _LINE_IN * (len(screen.questions) + 2)
    plots_in = 4.0 if screen.pictures else 0.0
    text_in = 0.75 + 0.25 * len(screen.sentences)
    height = text_in + table_in + plots_in + 0.2
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 9.5}):
        figure = Figure(figsize=(_WIDTH_IN, height))
        left = 0.25 / _WIDTH_IN

        def at(inches: float) -> float:
            return 1 - inches / height

        figure.text(left, at(0.3), title, fontsize=15, fontweight="bold", color=FOREGROUND.light)
        figure.text(left, at(0.55), machine, color=MUTED.light)
        for number, sentence in enumerate(screen.sentences):
            figure.text(left, at(0.85 + 0.25 * number), sentence, color=FOREGROUND.light)
        _draw_table(screen, figure, (left, at(text_in + table_in), 1 - 2 * left, table_in / height))
        for number, (operation, words) in enumerate(_PICTURES):
            lines = _lines(screen.analysis, operation)
            if lines:
                place = (
                    (0.7 + 6.45 * number) / _WIDTH_IN, at(height - 0.65),
                    4.3 / _WIDTH_IN, (plots_in - 1.1) / height,
                )  # fmt: skip
                axes = figure.add_axes(place)
                plots.draw_on(axes, lines, "time", plots_in - 1.1)
                axes.set_title(words, loc="left", fontsize=10, color=FOREGROUND.light)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=_DPI, facecolor="white")
        return png.getvalue()


def _draw_table(
    screen: FirstScreen, figure: Figure, place: tuple[float, float, float, float]
) -> None:
    axes = figure.add_axes(place)
    axes.set_axis_off()
    names = screen.libraries
    words = [[question.words, *(_plain(question.scores.get(name)) for name in names)]
             for question in screen.questions]  # fmt: skip
    fills = [
        ["white", *(_fill(question, question.scores.get(name)) for name in names)]
        for question in screen.questions
    ]
    first = 0.3
    widths = [first, *([(1 - first) / len(names)] * len(names))]
    labels = ["", *(_wrapped(short_label(screen.analysis, name)) for name in names)]
    table = axes.table(
        cellText=words, cellColours=fills, colLabels=labels, colWidths=widths, loc="upper left",
        bbox=Bbox.unit(), cellLoc="right",
    )  # fmt: skip
    table.auto_set_font_size(False)
    rows = len(words) + 2
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor("white")
        cell.set_height((2 if row == 0 else 1) / rows)
        cell.set_fontsize(8 if row == 0 else 9.5)
        if column == 0:
            cell.get_text().set_horizontalalignment("left")


def _fill(question: Question, score: Score | None) -> str:
    if score is None or not _says_something(score):
        return "white"
    return _grade(question, score)[1]


def _wrapped(label: str) -> str:
    """Two lines, split at the blank nearest to the middle."""
    blanks = [place for place, letter in enumerate(label) if letter == " "]
    if not blanks or len(label) < 10:
        return label
    middle = min(blanks, key=lambda place: abs(place - len(label) / 2))
    return f"{label[:middle]}\n{label[middle + 1 :]}"

# SPDX-License-Identifier: BSD-3-Clause
"""The effect of the scheduler's policies, between hosts (paper 2)."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from mobius_instrument.cells import Cell, bandwidth_mb_s, format_bytes, format_ns
from mobius_instrument.experiments import POLICIES
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    SIZE_AXIS,
    TIME_AXIS,
    Book,
    Chapter,
    curve,
    figures,
    format_interval,
    listing,
    note,
    paragraph,
    ratio_cell,
    time_cell,
)
from mobius_instrument.presentation.chapters.hosts import where
from mobius_instrument.presentation.chapters.schedule_goals import (
    ADAPTIVE,
    FIFO,
    MOST_OF_ADAPTIVE,
    Medians,
    bare,
    goals,
    words,
)
from mobius_instrument.presentation.charts import Axis
from mobius_instrument.stats import Ratio

# Puts and gets of an epoch with what=mixed.
_MIXED: Final = 32
_WHOLE: Final = ":what=one"
_PUT_SYNCS: Final = ("flush", "fence", "one-fence", "pscw", "lockx")
# The largest ratio of adaptive's time to that of the best fixed policy that counts as equal.
_ALLOWED: Final = MOST_OF_ADAPTIVE - 1


@dataclass(frozen=True)
class _Experiment:
    """A table: its cells without policy, and the column that shows the effect."""

    title: str
    cells: tuple[str, ...]
    beside: str
    against: str


_EXPERIMENTS: Final = (
    _Experiment(
        "16 puts, then 16 gets in one epoch", ("put:flush:allocate:what=mixed",),
        "interleave", FIFO,
    ),
    _Experiment(
        "A get behind a put: until the get has arrived", ("rget:flush:allocate:what=behind",),
        "gets-first", FIFO,
    ),
    _Experiment(
        "One put and its synchronisation",
        tuple(f"put:{sync}:allocate{_WHOLE}" for sync in _PUT_SYNCS),
        "aggregate", FIFO,
    ),
    _Experiment(
        "One get and its synchronisation",
        tuple(f"get:{sync}:allocate{_WHOLE}" for sync in ("flush", "pscw", "lockx")),
        "aggregate", FIFO,
    ),
    _Experiment("One buffer in n puts", (), "aggregate", FIFO),
    _Experiment(
        "Puts of 8 bytes to scattered places, and one of as many bytes",
        tuple(
            f"put:{sync}:allocate:what=scattered{n}"
            for sync in ("flush", "one-fence") for n in ("", ":n=1")
        ),
        "aggregate", FIFO,
    ),
    _Experiment(
        "Random puts and gets, 1 byte to 4 KB", ("put:flush:allocate:what=random",),
        "aggregate", FIFO,
    ),
)  # fmt: skip


def _columns(book: Book) -> list[tuple[str, str]]:
    """Libraries with their policies; "" where a library has none."""
    found: list[tuple[str, str]] = []
    for library in book.libraries("schedule"):
        policies = {
            one.cell.option("policy") for one in book.of("schedule") if one.library == library
        }
        found += [(library, policy) for policy in ("", *POLICIES) if policy in policies]
    return found


def _value(ratio: Ratio | None) -> float | None:
    return ratio.value if ratio is not None else None


def _cells_of(experiment: _Experiment, series: list[Series]) -> list[Cell]:
    if experiment.cells:
        return [Cell.parse(f"schedule:{text}") for text in experiment.cells]
    pieces = {bare(one) for one in series if one.cell.option("what") == "pieces"}
    return sorted(pieces, key=lambda cell: int(cell.option("n")))


def _heads(book: Book, columns: list[tuple[str, str]]) -> list[str]:
    heads = []
    for library, policy in columns:
        words = f"<br>{policy}" if policy else ""
        heads.append(f"{book.head(library)}{words}")
    return heads


def _table(
    book: Book, experiment: _Experiment, cells: list[Cell], medians: Medians, mobius: str
) -> str:
    columns = _columns(book)
    rows = []
    for row in medians.rows(cells):
        cell, size = row
        times = [medians.of(row, column) for column in columns]
        best = min((one for one in times if one is not None), default=None)
        rows.append(
            [
                escape(words(cell)),
                tables.number(format_bytes(size), size),
                *(time_cell(one, best) for one in times),
                ratio_cell(
                    _value(medians.ratio(row, mobius, experiment.beside, experiment.against))
                ),
                ratio_cell(
                    _value(medians.ratio(row, mobius, ADAPTIVE, medians.best_fixed(row, mobius)))
                ),
            ]
        )
    if not rows:
        return ""
    head = [
        "synchronisation", "size", *_heads(book, columns),
        f"{experiment.beside} ÷ {experiment.against}", "adaptive ÷ best fixed",
    ]  # fmt: skip
    return f"<h3>{escape(experiment.title)}</h3>" + tables.table(head, rows, 1, sortable=True)


def _sentences(medians: Medians, series: list[Series], mobius: str) -> list[str]:
    """Adaptive beside the best fixed policy; and the policy that each experiment is about beside
    fifo, at the size where most of it is certain."""
    found = []
    compared: list[tuple[Ratio, str]] = []
    for experiment in _EXPERIMENTS:
        ratios = []
        for row in medians.rows(_cells_of(experiment, series)):
            where_at = f"{experiment.title[0].lower()}{experiment.title[1:]}, {words(row[0])},"
            where_at += f" {format_bytes(row[1])}"
            ratio = medians.ratio(row, mobius, experiment.beside, experiment.against)
            if ratio is not None:
                ratios.append((ratio, where_at))
            over = medians.ratio(row, mobius, ADAPTIVE, medians.best_fixed(row, mobius))
            if over is not None:
                compared.append((over, where_at))
        if not ratios:
            continue
        ratio, where_at = min(ratios, key=lambda one: one[0].high)
        if ratio.high < 1:
            found.append(
                f"{experiment.beside} takes {format_interval(ratio)} of the time of"
                f" {experiment.against} at best: {where_at}."
            )
        else:
            found.append(
                f"{experiment.title}: {experiment.beside} is at no size certainly faster than"
                f" {experiment.against}."
            )
    if compared:
        found.insert(0, _of_adaptive(compared))
    return found


def _of_adaptive(compared: list[tuple[Ratio, str]]) -> str:
    slower = [one for one in compared if one[0].is_real(_ALLOWED) and one[0].value > 1]
    if not slower:
        return (
            f"Möbius' policy adaptive takes in none of {len(compared)} comparisons certainly over"
            f" {_ALLOWED:.0%} longer than the best fixed one."
        )
    ratio, where_at = max(slower, key=lambda one: one[0].value)
    return (
        f"Möbius' policy adaptive takes in {len(slower)} of {len(compared)} comparisons certainly"
        f" longer than the best fixed one, at most {format_interval(ratio)} times: {where_at}."
    )


def _of_socket(socket: Series) -> str:
    times = [f"{format_bytes(size)} {format_ns(s.median)}" for size, s in socket.summaries.items()]
    return f"There over a plain socket, and 8 bytes back: {listing(times)}."


def _of_goals(table: str, missed: list[str]) -> str:
    if not table:
        return ""
    if not missed:
        return paragraph("All of them were met here.")
    return paragraph(f"Not met here: {'; '.join(missed)}.")


def _charts(book: Book, series: list[Series]) -> list[str]:
    names = {
        column: f"{book.label(column[0])}{': ' + column[1] if column[1] else ''}"
        for column in _columns(book)
    }
    charts = []
    for what, title, axis in (
        ("mixed", "16 puts, then 16 gets: both directions together", Axis("bandwidth", "mbs")),
        ("behind", "A get behind a put: until the get has arrived", TIME_AXIS),
    ):
        curves = []
        for one in series:
            if one.cell.option("what") != what or len(one.summaries) < 2:
                continue
            policy = one.cell.option("policy")
            style = POLICIES.index(policy) if policy else 0
            name = names[one.library, policy]
            if what == "mixed":
                curves.append(
                    curve(
                        book, one, name, style,
                        lambda size, ns: bandwidth_mb_s(_MIXED * size, ns),
                    )
                )  # fmt: skip
            else:
                curves.append(curve(book, one, name, style))
        charts.append(book.charts.figure(title, SIZE_AXIS, axis, curves) if curves else "")
    return charts


def chapter(book: Book) -> Chapter | None:
    """The chapter on the scheduler, if its experiments were measured."""
    series = [one for one in book.of("schedule") if one.summaries]
    if not series:
        return None
    mobius = next((one.library for one in series if book.is_mobius(one.library)), "")
    sockets = [one for one in book.sockets() if one.library == mobius]
    medians = Medians(book.analysis, [*series, *sockets])
    sentences = _sentences(medians, series, mobius)
    sentences += [_of_socket(one) for one in sockets]
    table, missed = goals(book, medians, mobius)
    html = (
        paragraph(
            f"Between {where(book.analysis)}: epochs whose operations could go in another order,"
            " merged, or many in one message, as in paper 2 and figure 11 of paper 3: Möbius under"
            " each policy of its scheduler beside other libraries on the same link. Times are of"
            " one epoch at the origin, its synchronisation included; of a get behind a put until"
            " the get has arrived. In brackets: the 95 % interval of a ratio."
        )
        + table
        + _of_goals(table, missed)
        + f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in sentences)}</ul>"
        + figures(*_charts(book, series))
        + "".join(
            _table(book, one, _cells_of(one, series), medians, mobius) for one in _EXPERIMENTS
        )
        + note(
            "fifo: each operation a message of its own, in the order of the calls. fence: one"
            " before and one behind; one-fence: one behind, which is the next epoch's first; pscw:"
            " start, complete; lockx: an exclusive lock. Random epochs are the same for all. Over a"
            " plain TCP socket between the same processes go as many bytes and 8 back, both ends"
            " polling."
        )
    )
    return Chapter("schedule", "What the scheduler's policies do", html, tuple(sentences[:1]))

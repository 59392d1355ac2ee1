# SPDX-License-Identifier: BSD-3-Clause
"""Compares one host with several: both curves of everything that was measured on both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

from mobius_instrument.cells import (
    EXPERIMENTS,
    PAPER1_EXPERIMENTS,
    Cell,
    bandwidth_mb_s,
    format_bytes,
    format_ns,
    format_ratio,
)
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.chapters.base import (
    SIZE_AXIS,
    TIME_AXIS,
    Book,
    Chapter,
    curve,
    details,
    figures,
    note,
    numbers,
    paragraph,
    ratio_cell,
    socket_curves,
    time_cell,
)
from mobius_instrument.presentation.charts import Axis, Curve
from mobius_instrument.presentation.findings import find
from mobius_instrument.results import Results

_BETWEEN_STYLE = 1
# The compared part of an experiment with parts or variants; others are compared as a whole.
_KEPT = {
    "datatypes": ("type", "byte"),
    "multi-op": ("n", "1"),
    "apex": ("k", "1"),
    "overlap": ("part", "transfer"),
    "bandwidth": ("touch", "1"),
}
# The operations that a plain socket has, too: one transfer and its completion, or many in a row.
_BESIDE_SOCKET = {"completion": False, "bandwidth": True}
_LARGE_BYTES = 1024


@dataclass(frozen=True)
class _Pair:
    """The best way on one host, and the best between hosts."""

    here: Series
    between: Series

    @property
    def sizes(self) -> list[int]:
        return sorted(self.here.summaries.keys() & self.between.summaries.keys())

    def ratio(self, size: int) -> float:
        return self.between.summaries[size].median / max(self.here.summaries[size].median, 1e-3)


def divide(results: Results) -> tuple[Results, Results | None]:
    """What was measured on one host, and what between hosts, there under the names of the same
    libraries; None when nothing was."""
    names = {name: one for name, one in results.libraries.items() if one.hosts}
    if not names:
        return results, None
    plan = results.plan
    cells = plan["cells"] if isinstance(plan.get("cells"), dict) else {}

    def part(chosen: dict[str, str], words: str) -> Results:
        libraries = {}
        for name, base in chosen.items():
            record = results.libraries[name]
            label = record.label.removesuffix(words)
            libraries[base] = replace(record, library=base, label=label)
        planned = {base: cells[name] for name, base in chosen.items() if name in cells}
        return replace(
            results,
            run={**results.run, "plan": {**plan, "cells": planned}},
            libraries=libraries,
            launches=[
                {**one, "library": chosen[one["library"]]}
                for one in results.launches
                if one["library"] in chosen
            ],
            samples={
                (chosen[name], cell): values
                for (name, cell), values in results.samples.items()
                if name in chosen
            },
            outcomes=[
                replace(one, library=chosen[one.library])
                for one in results.outcomes
                if one.library in chosen
            ],
            facts=[
                replace(one, library=chosen[one.library])
                for one in results.facts
                if one.library in chosen
            ],
        )

    here = part({name: name for name in results.libraries if name not in names}, "")
    between = part({name: name.partition("@")[0] for name in names}, ", between hosts")
    return here, between if between.samples else None


def where(analysis: Analysis) -> str:
    """The hosts in words: "hosta and hostb, links of 1gbit"."""
    plan = analysis.results.plan
    names = [str(name) for name in plan.get("hosts", [])] or ["other hosts"]
    rate = f", links of {plan['rate']}" if plan.get("rate") else ""
    return f"{' and '.join(names)}{rate}"


def _chosen(series: list[Series]) -> list[Series]:
    found = []
    for one in series:
        name, value = _KEPT.get(one.cell.experiment, ("", ""))
        if name and one.cell.option(name) != value:
            continue
        # With many processes the partners differ between the two sides.
        if one.cell.option("procs", "2") == "2" and one.cell.option("dir", "one") == "one":
            found.append(one)
    return found


def _best(series: list[Series]) -> Series | None:
    """The shortest times over the sizes that the most complete series share."""
    if not series:
        return None
    most = max(len(one.summaries) for one in series)
    complete = [one for one in series if len(one.summaries) == most]
    common = set.intersection(*(set(one.summaries) for one in complete))
    return min(complete, key=lambda one: one.geometric_mean(common))


def _pairs(here: Book, between: Book, experiment: str, operation: str) -> dict[str, _Pair]:
    found = {}
    for library in between.libraries(experiment):
        ours = [one for one in _chosen(here.of(experiment, operation)) if one.library == library]
        theirs = [
            one for one in _chosen(between.of(experiment, operation)) if one.library == library
        ]
        first, second = _best(ours), _best(theirs)
        if first and second and _Pair(first, second).sizes:
            found[library] = _Pair(first, second)
    return found


def _style(cell: Cell) -> str:
    return f", {cell.style}" if cell.style else ""


def _charts(
    here: Book, between: Book, experiment: str, operation: str, pairs: dict[str, _Pair]
) -> list[str]:
    """Time, and bandwidth if sizes are large, on both sides; beside a plain socket if there is
    one."""
    if max((len(pair.sizes) for pair in pairs.values()), default=0) < 2:
        return []
    title = tables.words(experiment, operation)
    curves: list[Curve] = []
    rates: list[Curve] = []
    for library, pair in pairs.items():
        for series, side, style in (
            (pair.here, "on one host", 0),
            (pair.between, "between hosts", _BETWEEN_STYLE),
        ):
            name = f"{here.label(library)}, {side}: {series.cell.style or operation}"
            curves.append(curve(here, series, name, style))
            rates.append(curve(here, series, name, style, bandwidth_mb_s))
    if experiment in _BESIDE_SOCKET:
        in_a_row = _BESIDE_SOCKET[experiment]
        curves += socket_curves(between, in_a_row)
        rates += socket_curves(between, in_a_row, bandwidth_mb_s)
    charts = [here.charts.figure(f"{title}: time on one host and between", SIZE_AXIS, TIME_AXIS,
                                 curves)]  # fmt: skip
    if max(max(pair.sizes) for pair in pairs.values()) >= _LARGE_BYTES:
        bandwidth = Axis("bandwidth", "mbs")
        charts.append(
            here.charts.figure(f"{title}: bandwidth on one host and between", SIZE_AXIS, bandwidth,
                               rates)
        )  # fmt: skip
    return charts


def _rows(here: Book, experiment: str, pairs: dict[str, _Pair]) -> list[list[str]]:
    rows = []
    for library, pair in pairs.items():
        small, large = pair.sizes[0], pair.sizes[-1]
        for size in dict.fromkeys((small, large)):
            first, second = pair.here.summaries[size], pair.between.summaries[size]
            rows.append(
                [
                    experiment,
                    escape(pair.here.cell.operation_words),
                    here.head(library),
                    escape(pair.here.cell.style or "–"),
                    escape(pair.between.cell.style or "–"),
                    tables.number(format_bytes(size), size),
                    time_cell(first.median),
                    time_cell(second.median),
                    ratio_cell(pair.ratio(size)),
                ]
            )
    return rows


def _sentences(here: Book, between: Book) -> list[str]:
    found = []
    for experiment, words in (
        ("completion", "A put and its completion"),
        ("sync-cost", "A put that the target knows of"),
    ):
        pairs = _pairs(here, between, experiment, "put")
        if not pairs:
            continue
        size = min(min(pair.sizes) for pair in pairs.values())
        there = {name: pair for name, pair in pairs.items() if size in pair.sizes}
        order = sorted(there, key=lambda name: there[name].between.summaries[size].median)
        parts = [
            f"{format_ns(there[name].between.summaries[size].median)} in {here.label(name)}"
            f"{_style(there[name].between.cell)} ({format_ratio(there[name].ratio(size))} times"
            " as long as on one host)"
            for name in order
        ]
        found.append(
            f"{words}, {format_bytes(size)}, between {where(between.analysis)}: {'; '.join(parts)}."
        )
    return found


def _lower(sentence: str) -> str:
    """The sentence's text after a colon."""
    first = sentence.partition(" ")[0]
    ordinary = ("A", "All", "An", "At", "Do", "For", "From", "In", "Up", "Above")
    return sentence[0].lower() + sentence[1:] if first in ordinary else sentence


def chapter(here: Book, between: Book, chapters: list[Chapter]) -> Chapter:
    """`chapters` are those of measurements between hosts, shown whole in the end."""
    charts: list[str] = []
    rows: list[list[str]] = []
    for experiment in EXPERIMENTS:
        operations = dict.fromkeys(one.cell.operation for one in between.of(experiment))
        for operation in operations:
            pairs = _pairs(here, between, experiment, operation)
            charts += _charts(here, between, experiment, operation, pairs)
            rows += _rows(here, experiment, pairs)
    compared = _sentences(here, between)
    findings = [f"Between hosts: {_lower(finding.sentence)}" for finding in find(between.analysis)]
    head = (
        "experiment", "operation", "library", "best way on one host", "best way between", "size",
        "on one host", "between hosts", "ratio",
    )  # fmt: skip
    html = (
        paragraph(
            "The same programs with both processes on this host, and dealt out to"
            f" {where(between.analysis)}: the pair of curves of paper 1. Every library goes over"
            " the same link, started by its own launcher. Solid: on one host; dashed: between"
            " hosts, in the same colour. Of each library the synchronisation and memory with the"
            " shortest times, chosen on each side by itself."
        )
        + "".join(f"<p>{escape(text)}</p>" for text in compared)
        + figures(*charts)
        + _of_sockets(between)
        + "<h3>All experiments: the best way on each side</h3>"
        + numbers(tables.table(head, rows, 5, sortable=True))
        + note(
            "The smallest and the largest size that was measured on both sides; two processes."
            " More processes and other ways are in the parts below."
        )
        + (details("Möbius and the best other between hosts, in words",
                   f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in findings)}</ul>")
           if findings else "")
        + "<h3>Every experiment between hosts</h3>"
        + "".join(details(one.title, one.html) for one in chapters)
        + _cells(between)
    )  # fmt: skip
    sentences = compared + [
        f"Between hosts: {_lower(one.sentences[0])}" for one in chapters if one.sentences
    ]
    return Chapter("hosts", "On one host and between hosts", html, tuple(sentences))


def _of_sockets(between: Book) -> str:
    if not between.of("socket"):
        return ""
    return note(
        "Plain socket: the bytes over a TCP socket between both hosts, and 8 back, both ends"
        " polling; of bandwidth many in a row before that. It was measured in the launches of"
        " schedule and bandwidth."
    )


def _cells(between: Book) -> str:
    """Cells that have no chapter, or not all their times."""
    matrix = tables.outcome_matrix(between.analysis)
    first = any(one.cell.experiment in PAPER1_EXPERIMENTS for one in between.analysis.series)
    title = "Every cell between hosts, and its outcome"
    return details(title, matrix) if matrix and (first or "<td" in matrix) else ""

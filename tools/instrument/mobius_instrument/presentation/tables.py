# SPDX-License-Identifier: BSD-3-Clause
"""The report's tables as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from mobius_instrument.cells import (
    PAPER1_EXPERIMENTS,
    Cell,
    bandwidth_mb_s,
    format_bytes,
    format_mb_s,
    format_ns,
    format_ratio,
)
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.colours import Look
from mobius_instrument.presentation.findings import SIZE_CLASSES, Finding, short_label
from mobius_instrument.results import LibraryRecord, Outcome
from mobius_instrument.stats import PERCENTILES

# The percentile that shows a tail.
_TAIL: Final = PERCENTILES.index(95)
_EXPERIMENT_WORDS: Final = {
    ("pingpong", "put"): "Ping-pong put, one way",
    ("pingpong", "get"): "Ping-pong get, one way",
    ("completion", "put"): "Put and its completion",
    ("completion", "get"): "Get and its completion",
}

# In order of severity: a cell shows the worst result.
_STATUSES: Final = ("wrong", "crashed", "hung", "refused")


def words(experiment: str, operation: str) -> str:
    """The name of an experiment and operation in headings."""
    return _EXPERIMENT_WORDS.get((experiment, operation), f"{experiment}, {operation}")


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numeric_from: int, sortable: bool = False
) -> str:
    """Cells are HTML. Those from `numeric_from` on are aligned as numbers."""

    def row(cells: Sequence[str], tag: str) -> str:
        parts = []
        for number, cell in enumerate(cells):
            kind = ' class="n"' if number >= numeric_from else ""
            content = cell if cell.startswith(f"<{tag}") else f"<{tag}{kind}>{cell}</{tag}>"
            parts.append(content)
        return f"<tr>{''.join(parts)}</tr>"

    kind = ' class="sortable"' if sortable else ""
    body = "".join(row(cells, "td") for cells in rows)
    return (
        f'<div class="scroll"><table{kind}><thead>{row(head, "th")}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def number(shown: str, value: float, more: str = "") -> str:
    """A cell with a number: its text, and its key for sorting."""
    return f'<td class="n{more}" data-v="{value:.6g}">{shown}</td>'


def dot(look: Look | None) -> str:
    """A spot of the library's colour."""
    return f'<i style="background:var(--{look.paint.role})"></i>' if look else ""


def lead_table(findings: list[Finding], analysis: Analysis) -> str:
    """How many times faster the subject is than the best other, per experiment and size class."""
    rows = []
    for experiment, operation in dict.fromkeys((f.experiment, f.operation) for f in findings):
        cells = [escape(words(experiment, operation))]
        for size_class in SIZE_CLASSES:
            finding = next(
                (
                    f
                    for f in findings
                    if (f.experiment, f.operation, f.size_class)
                    == (experiment, operation, size_class)
                ),
                None,
            )
            if finding is None:
                cells.append('<td class="n">–</td>')
                continue
            rival = max(finding.points, key=lambda p: -p.ratio.value).rival
            verdict = {"same": "no certain difference"}.get(finding.verdict, finding.verdict)
            cells.append(
                f'<td class="n {finding.verdict}"><b>{finding.range_words}</b>'
                f"<small>{verdict}; nearest {escape(short_label(analysis, rival.library))}</small>"
                "</td>"
            )
        rows.append(cells)
    if not rows:
        return ""
    subject = short_label(analysis, findings[0].subject)
    head = [f"time of the best other ÷ time of {escape(subject)}"]
    head += [
        escape(size_class.words[0].lower() + size_class.words[1:]) for size_class in SIZE_CLASSES
    ]
    return table(head, rows, 1)


def latency_table(
    series: list[Series], size: int, analysis: Analysis, looks: dict[str, Look]
) -> str:
    """Statistics at one size, fastest first."""
    there = sorted(
        (one for one in series if size in one.summaries),
        key=lambda one: one.summaries[size].median,
    )
    if not there:
        return ""
    best = there[0].summaries[size].median
    rows = []
    for one in there:
        s = one.summaries[size]
        rows.append(
            [
                dot(looks.get(one.library)) + escape(analysis.results.label(one.library)),
                escape(one.cell.style),
                number(format_ns(s.median), s.median, " strong"),
                number(format_ratio(s.median / best), s.median / best),
                number(f"{format_ns(s.low)} … {format_ns(s.high)}", s.low),
                number(format_ns(s.minimum), s.minimum),
                number(format_ns(s.average), s.average),
                number(format_ns(s.maximum), s.maximum),
                number(format_ns(s.percentiles[_TAIL]), s.percentiles[_TAIL]),
                number(format_ns(s.deviation), s.deviation),
                number(f"{s.launches} × {s.samples // s.launches}", s.samples),
            ]
        )
    head = (
        "library", "synchronisation, memory", "median", "÷ fastest", "95 % interval of the median",
        "minimum", "average", "maximum", f"{PERCENTILES[_TAIL]} % are below", "std. deviation",
        "rounds or launches × samples",
    )  # fmt: skip
    return table(head, rows, 2, sortable=True)


def bandwidth_table(
    series: list[Series], sizes: list[int], analysis: Analysis, looks: dict[str, Look]
) -> str:
    """Median bandwidth of these series at large sizes, fastest first at the largest."""

    def at(one: Series, size: int) -> float:
        return bandwidth_mb_s(size, one.summaries[size].median) if size in one.summaries else 0.0

    def row(one: Series) -> list[str]:
        library = dot(looks.get(one.library)) + escape(analysis.results.label(one.library))
        values = [at(one, size) for size in sizes]
        numbers = [number(format_mb_s(value) if value else "–", value) for value in values]
        return [library, escape(one.cell.style), *numbers]

    rows = [row(one) for one in sorted(series, key=lambda one: -at(one, sizes[-1]))]
    head = ["library", "synchronisation, memory", *(format_bytes(size) for size in sizes)]
    return table(head, rows, 2, sortable=True) if rows else ""


# Shown characters of a library's message; results.jsonl has all.
_SHOWN_DETAIL: Final = 120


def outcome_matrix(analysis: Analysis) -> str:
    """Every cell of every launched library: measured, or what happened instead."""
    plan = analysis.results.plan.get("cells")
    planned: dict[str, list[str]] = plan if isinstance(plan, dict) else {}
    libraries = [name for name in analysis.results.libraries if planned.get(name)]
    if not libraries:
        return ""
    outcomes = analysis.outcomes()
    # Cells that are measured in parts, each; some cells have facts and no times.
    sizes: dict[tuple[str, Cell], set[int]] = {}
    for series in analysis.series:
        key = series.library, series.cell.without("part")
        sizes.setdefault(key, set()).update(series.summaries)
    for fact in analysis.results.facts:
        sizes.setdefault((fact.library, fact.cell), {0})
    texts = []
    for text in dict.fromkeys(cell for name in libraries for cell in planned[name]):
        cell = Cell.parse(text)
        # With a chapter, only the cells that it may not show: those without all their times.
        has_chapter = cell.experiment not in PAPER1_EXPERIMENTS
        if not has_chapter or any((name, cell) in outcomes for name in libraries):
            texts.append(text)
    libraries = [name for name in libraries if not set(texts).isdisjoint(planned[name])]
    rows = []
    for text in texts:
        cell = Cell.parse(text)
        row = [f"<code>{escape(text)}</code>"]
        for name in libraries:
            if text not in planned[name]:
                row.append('<td class="none">–</td>')
            else:
                row.append(
                    _outcome_cell(outcomes.get((name, cell), []), len(sizes.get((name, cell), ())))
                )
        rows.append(row)
    if not rows:
        return ""
    return table(
        ["cell", *(escape(analysis.results.label(name)) for name in libraries)], rows, len(rows) + 9
    )


def _outcome_cell(outcomes: list[Outcome], measured: int) -> str:
    count = f"{measured} sizes" if measured != 1 else "1 size"
    if not outcomes:
        shown = f"✓ {count}" if measured else "not measured"
        return f'<td class="{"ok" if measured else "none"}">{shown}</td>'
    worst = min(outcomes, key=lambda one: _rank(one.status))
    details = dict.fromkeys(one.detail for one in outcomes if one.status == worst.status)
    more = f" (launch {worst.repeat + 1})" if worst.status in ("crashed", "hung") else ""
    kept = f"; {count} measured" if measured else ""
    text = "; ".join(list(details)[:3])
    short = text if len(text) <= _SHOWN_DETAIL else text[:_SHOWN_DETAIL] + "…"
    return (
        f'<td class="{escape(worst.status)}"><b>{escape(worst.status)}</b>{more}{kept}'
        f'<small title="{escape(text, quote=True)}">{escape(short)}</small></td>'
    )


def _rank(status: str) -> int:
    return _STATUSES.index(status) if status in _STATUSES else len(_STATUSES)


def library_table(analysis: Analysis, looks: dict[str, Look]) -> str:
    """The libraries found, and how they were built and started."""

    def state(record: LibraryRecord) -> str:
        if record.status == "ready":
            return "<td>measured</td>"
        shown = record.status.replace("-", " ")
        return (
            f'<td class="crashed"><b>{escape(shown)}</b><small>{escape(record.detail)}</small></td>'
        )

    rows = [
        [
            dot(looks.get(record.library)) + escape(record.label),
            state(record),
            f"<code>{escape(record.mpicc or '–')}</code>",
            f"<code>{escape(record.flags or '–')}</code>",
            f"<code>{escape(record.launcher or '–')}</code>",
        ]
        for record in analysis.results.libraries.values()
    ]
    return table(("library", "state", "compiler", "flags", "launcher"), rows, 9)

# SPDX-License-Identifier: BSD-3-Clause
"""Ten questions that a user has about a library. One time answers each, or the way it fails.

A library answers with its fastest synchronisation and memory at one size, the same size for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mobius_instrument.cells import MESSAGES, Cell, format_bytes, format_ns
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.chapters.base import listing
from mobius_instrument.presentation.findings import short_label
from mobius_instrument.presentation.selfcheck import threshold

_MB: Final = 1 << 20
# The statuses of cells that show a fault of the library, the worst first, and what it does then.
_FAULTS: Final = {"wrong": "wrong data", "crashed": "crashes", "hung": "hangs"}
_FAILURES: Final = {**_FAULTS, "refused": "refuses"}


@dataclass(frozen=True)
class Score:
    """The answer of a library. Without a time it has a `failure`; neither: it was not measured."""

    time_ns: float | None = None
    # The measured series of the time, unless it comes from facts.
    series: Series | None = None
    failure: str = ""
    # Cells of the question that fail at some size by the library's fault: how many, the worst way.
    faults: int = 0
    fault: str = ""
    remark: str = ""


# A time with its series.
Timed = tuple[float, Series]


@dataclass(frozen=True)
class Question:
    """What is asked, at which size, the section that says more, and all answers by library."""

    words: str
    section: str
    size: int
    scores: dict[str, Score]
    # In the verdict: what the best library is to be used for.
    use: str = ""
    # The libraries of which none is certainly slower than the one with the shortest time.
    best: tuple[str, ...] = ()

    @property
    def best_ns(self) -> float | None:
        """The shortest time."""
        times = [score.time_ns for score in self.scores.values() if score.time_ns is not None]
        return min(times, default=None)


@dataclass(frozen=True)
class _Asked:
    """A question before it is answered. `wanted` chooses cells; the size is the largest measured
    one up to `size`."""

    words: str
    section: str
    experiment: str
    size: int
    wanted: Callable[[Cell], bool]
    use: str = ""


def _operation(name: str, *syncs: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.operation == name and (not syncs or cell.sync in syncs)


def _is_message(cell: Cell) -> bool:
    return cell.operation in MESSAGES


def _one_word(cell: Cell) -> bool:
    return (
        cell.operation == "fetch_op"
        and cell.option("procs") == "2"
        and cell.option("word") == "one"
    )


def _gaps(cell: Cell) -> bool:
    """Blocks of 64 bytes with gaps, however they are moved."""
    return (
        cell.operation == "put"
        and cell.option("type") == "vector"
        and cell.option("block") == "64"
        and not cell.option("stride")
    )


_ASKED: Final = (
    _Asked("put of {size}, complete", "lead", "completion", 8, _operation("put"),
           "small puts"),
    _Asked("get of {size}, complete", "lead", "completion", 8, _operation("get")),
    _Asked("fetch and add, two processes at one word", "atomics", "atomics", 8, _one_word),
    _Asked("put of {size} by fence", "sync-cost", "sync-cost", 4, _operation("put", "fence")),
    _Asked("put of {size} by post, start, complete, wait", "sync-cost", "sync-cost", 4,
           _operation("put", "pscw")),
    _Asked("put of {size} by lock and unlock", "sync-cost", "sync-cost", 4,
           _operation("put", "lock", "lockx")),
    _Asked("message of {size}, one way", "lead", "pingpong", 8, _is_message),
    _Asked("put of {size}, complete", "lead", "completion", _MB, _operation("put"),
           "large puts"),
    _Asked("put of {size} in blocks of 64 B with gaps", "datatypes", "datatypes", 16 << 10, _gaps),
)  # fmt: skip


def ask(analysis: Analysis) -> list[Question]:
    """All questions that some library answers."""
    libraries = [name for name in analysis.libraries if analysis.results.kind(name) != "limit"]
    found = [_answered(analysis, asked, libraries) for asked in _ASKED]
    found.append(_busy_target(analysis, libraries))
    return [question for question in found if question.best_ns is not None]


def _answered(analysis: Analysis, asked: _Asked, libraries: list[str]) -> Question:
    chosen = [one for one in analysis.of(asked.experiment) if asked.wanted(one.cell)]
    sizes = {size for one in chosen if one.library in libraries for size in one.summaries}
    size = max((size for size in sizes if size <= asked.size), default=min(sizes, default=0))
    failed = {
        key: outcomes[0].status
        for key, outcomes in analysis.outcomes().items()
        if key[1].experiment == asked.experiment and asked.wanted(key[1])
    }
    words = asked.words.format(size=format_bytes(size))
    scores = {name: _score(analysis, name, chosen, size, failed) for name in libraries}
    best = _not_slower(analysis, _timed(scores), size)
    return Question(words, asked.section, size, scores, asked.use, best)


def _timed(scores: dict[str, Score]) -> dict[str, Timed]:
    return {
        name: (score.time_ns, score.series)
        for name, score in scores.items()
        if score.time_ns is not None and score.series is not None
    }


def _not_slower(analysis: Analysis, timed: dict[str, Timed], size: int) -> tuple[str, ...]:
    """The libraries of which none is certainly slower than the one with the shortest time."""
    _, shortest = min(timed.values(), key=lambda one: one[0], default=(0.0, None))
    if shortest is None:
        return ()
    least = threshold(analysis)
    return tuple(
        name
        for name, (_, series) in timed.items()
        if not analysis.comparable(series, shortest, size)
        or not analysis.ratio(series, shortest, size).is_real(least)
    )


def _score(
    analysis: Analysis,
    library: str,
    chosen: list[Series],
    size: int,
    failed: dict[tuple[str, Cell], str],
) -> Score:
    statuses = [status for (name, _), status in failed.items() if name == library]
    faults = [status for status in statuses if status in _FAULTS]
    fault = next((words for status, words in _FAULTS.items() if status in faults), "")
    there = [one for one in chosen if one.library == library and size in one.summaries]
    if not there:
        failure = next((words for status, words in _FAILURES.items() if status in statuses), "")
        return Score(failure=failure)
    best = min(there, key=lambda one: one.summaries[size].median)
    summary = best.summaries[size]
    remark = (
        f"{best.cell.style}; 95 % interval {format_ns(summary.low)} to {format_ns(summary.high)};"
        f" {summary.samples} samples of {summary.launches}"
        f" {'rounds' if analysis.in_turns(best) else 'launches'}"
    )
    return Score(summary.median, best, "", len(faults), fault, remark)


def _busy_target(analysis: Analysis, libraries: list[str]) -> Question:
    """The time of the slowest operation on a process that computes; a failure if one waits for
    it."""
    times: dict[str, dict[Cell, float]] = {}
    late: dict[str, set[Cell]] = {}
    for fact in analysis.results.facts:
        if fact.cell.experiment != "progress" or fact.name not in ("completes", "arrives"):
            continue
        known = times.setdefault(fact.library, {})
        took = fact.number if fact.name == "completes" else 0.0
        known[fact.cell] = max(known.get(fact.cell, 0.0), took)
        if fact.value != "yes":
            late.setdefault(fact.library, set()).add(fact.cell)
    broken: dict[str, set[Cell]] = {}
    for (library, cell), outcomes in analysis.outcomes().items():
        if cell.experiment == "progress" and outcomes[0].status in _FAULTS:
            kind = late if outcomes[0].status == "hung" else broken
            kind.setdefault(library, set()).add(cell)
    scores = {}
    for library in libraries:
        waits, breaks = late.get(library, set()), broken.get(library, set())
        total = len(times.get(library, {}).keys() | waits | breaks)
        longest = max(times.get(library, {}).values(), default=0.0)
        if waits or breaks:
            word = "fail" if breaks else "wait"
            scores[library] = Score(failure=f"{len(waits | breaks)} of {total} {word}")
        elif longest > 0:
            remark = f"the middle trial of the slowest of {total} kinds of operation"
            scores[library] = Score(longest, remark=remark)
        else:
            scores[library] = Score()
    able = tuple(name for name, score in scores.items() if score.time_ns is not None)
    # Three trials show that operations complete, and not in whose library a little sooner.
    best = able if len(able) == 1 else ()
    return Question("any operation while the target computes", "progress", 8, scores, "", best)


def verdict(analysis: Analysis, questions: list[Question]) -> list[str]:
    """What to use for small puts and for large ones, in a sentence each."""
    sentences = [_sentence(analysis, question) for question in questions if question.use]
    return [sentence for sentence in sentences if sentence]


def _two_digits(value: float) -> str:
    digits = max(1 - math.floor(math.log10(value)), 0)
    return f"{round(value, 1 - math.floor(math.log10(value))):,.{digits}f}"


def _rounded(time_ns: float) -> str:
    """As in prose: two digits, which a second run finds again."""
    digits = 1 - math.floor(math.log10(max(time_ns, 1e-3)))
    value, _, unit = format_ns(round(time_ns, digits)).partition(" ")
    return f"{_two_digits(float(value.replace(',', '')))} {unit}"


def _sentence(analysis: Analysis, question: Question) -> str:
    """The fastest library beside the next one, or all of which none is certainly faster. Other
    interfaces of Möbius are no rivals of it; that of MPI programs is named, since these need no
    change to use it."""
    rivals = {
        name: one
        for name, one in _timed(question.scores).items()
        if analysis.results.kind(name) != "front"
    }
    if not rivals:
        return ""
    best = _not_slower(analysis, rivals, question.size)
    if len(best) > 1:
        told = _undecided(analysis, question, {name: rivals[name] for name in best})
    else:
        told = _decided(analysis, question, rivals, best[0])
    fronts = [
        score.time_ns
        for name, score in question.scores.items()
        if name.endswith("+mobius") and score.time_ns is not None
    ]
    if fronts:
        told += f"; in unchanged MPI programs on Möbius in {_rounded(min(fronts))}"
    return told + "."


def _undecided(analysis: Analysis, question: Question, best: dict[str, Timed]) -> str:
    times = sorted(time for time, _ in best.values())
    shortest, longest = _rounded(times[0]), _rounded(times[-1])
    span = shortest if shortest == longest else f"{shortest} to {longest}"
    labels = listing([short_label(analysis, name) for name in best])
    return (
        f"For {question.use} no difference between {labels} is certain:"
        f" {format_bytes(question.size)} complete in {span}"
    )


def _decided(analysis: Analysis, question: Question, rivals: dict[str, Timed], best: str) -> str:
    size, label = format_bytes(question.size), short_label(analysis, best)
    time, series = rivals[best]
    others = {name: one for name, one in rivals.items() if name != best}
    if not others:
        return f"For {question.use}: {size} complete in {_rounded(time)} in {label}"
    next_name = min(others, key=lambda name: others[name][0])
    next_time, next_series = others[next_name]
    ratio = analysis.ratio(next_series, series, question.size)
    return (
        f"For {question.use} use {label}: {size} complete in {_rounded(time)},"
        f" {_two_digits(ratio.value)} times faster than in {short_label(analysis, next_name)}"
        f" ({_rounded(next_time)})"
    )

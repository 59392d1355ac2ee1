# SPDX-License-Identifier: BSD-3-Clause
"""The main findings in words, computed from the data.

In each size class Möbius stands against the one MPI library and style that is fastest over the
sizes of that class: the best that a program could choose instead. (The fastest at each single size
would be another library and style from size to size, chosen by the luck of its launches: of thirty
series with equal times, the best of any run is always ahead.)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from mobius_instrument.cells import Cell, format_bytes, format_ns, format_ratio
from mobius_instrument.compare import THRESHOLD
from mobius_instrument.presentation.analysis import Analysis, Series
from mobius_instrument.presentation.selfcheck import threshold
from mobius_instrument.stats import Ratio

_KB: Final = 1_024


@dataclass(frozen=True)
class SizeClass:
    """Sizes above `above` and up to `up_to` bytes."""

    name: str
    words: str
    above: int
    up_to: int


SIZE_CLASSES: Final = (
    SizeClass("small", "Up to 4 KB", 0, 4 * _KB),
    SizeClass("medium", "From 4 KB to 256 KB", 4 * _KB, 256 * _KB),
    SizeClass("large", "Above 256 KB", 256 * _KB, 1 << 62),
)

_VERBS: Final = {"completion": "completes a {op}", "pingpong": "passes a {op} back and forth"}

# The machine's limits, and other interfaces of the same engine.
_NO_RIVALS: Final = ("limit", "front")

FASTER: Final = "faster"
SLOWER: Final = "slower"
SAME: Final = "same"


@dataclass(frozen=True)
class Point:
    """One size: the ratio of the rival's time to the subject's."""

    size: int
    ratio: Ratio
    rival: Series
    # The smallest difference that is told.
    threshold: float = THRESHOLD

    @property
    def verdict(self) -> str:
        """The certain result at this size: faster, slower, or neither."""
        if not self.ratio.is_real(self.threshold):
            return SAME
        return FASTER if self.ratio.value > 1 else SLOWER


@dataclass(frozen=True)
class Finding:
    """The subject compared with its rivals in one experiment, operation and size class."""

    experiment: str
    operation: str
    size_class: SizeClass
    subject: str
    points: tuple[Point, ...]
    sentence: str

    @property
    def verdict(self) -> str:
        """The verdict of all points, or "mixed"."""
        verdicts = {point.verdict for point in self.points}
        return verdicts.pop() if len(verdicts) == 1 else "mixed"

    @property
    def worst(self) -> float:
        """The smallest ratio: the subject's worst size."""
        return min(point.ratio.value for point in self.points)

    @property
    def range_words(self) -> str:
        """ "9.3 – 12.1 ×": how many times faster the subject is; below 1 it is slower."""
        return _range([point.ratio.value for point in self.points], " – ") + " ×"


def find(analysis: Analysis) -> list[Finding]:
    """All findings, put before get, small sizes before large ones."""
    found = []
    for experiment in ("completion", "pingpong"):
        for operation in ("put", "get"):
            pair = _subject_and_rivals(analysis, experiment, operation)
            if pair is None:
                continue
            subject, rivals = pair
            for size_class in SIZE_CLASSES:
                points = tuple(_points(analysis, subject, rivals, size_class))
                if points:
                    found.append(_finding(analysis, subject, size_class, points))
    return found


def _subject_and_rivals(
    analysis: Analysis, experiment: str, operation: str
) -> tuple[Series, list[Series]] | None:
    """Compares Möbius with the MPIs; without Möbius, the best library with the others."""
    kinds = {name: analysis.results.kind(name) for name in analysis.libraries}
    best = [
        series
        for name in analysis.libraries
        if kinds[name] not in _NO_RIVALS and (series := analysis.best(experiment, operation, name))
    ]
    if len(best) < 2:
        return None
    mobius = [series for series in best if kinds[series.library] == "mobius"]
    if mobius:
        subject = mobius[0]
    else:
        common = set.intersection(*(set(series.summaries) for series in best))
        subject = min(best, key=lambda series: series.geometric_mean(common))
    rivals = [
        series
        for series in analysis.of(experiment, operation)
        if series.library != subject.library and kinds[series.library] not in _NO_RIVALS
    ]
    return (subject, rivals) if rivals else None


def _points(
    analysis: Analysis, subject: Series, rivals: list[Series], size_class: SizeClass
) -> list[Point]:
    sizes = {size for size in subject.summaries if size_class.above < size <= size_class.up_to}
    found = [
        {
            size
            for size in sizes & rival.summaries.keys()
            if analysis.comparable(subject, rival, size)
        }
        for rival in rivals
    ]
    # A series that broke off is not chosen while another one has all sizes.
    most = max(map(len, found), default=0)
    if most == 0:
        return []
    complete = [index for index, own in enumerate(found) if len(own) == most]
    best = min(complete, key=lambda index: rivals[index].geometric_mean(found[index]))
    least = threshold(analysis)
    return [
        Point(size, analysis.ratio(rivals[best], subject, size), rivals[best], least)
        for size in sorted(found[best])
    ]


def _finding(
    analysis: Analysis, subject: Series, size_class: SizeClass, points: tuple[Point, ...]
) -> Finding:
    name = short_label(analysis, subject.library)
    verb = _VERBS[subject.cell.experiment].format(op=subject.cell.operation)
    verdicts = Counter(point.verdict for point in points)
    words = size_class.words
    if len(points) == 1:
        words = f"At {format_bytes(points[0].size)}"
    if len(verdicts) == 1 and verdicts[SAME]:
        sentence = (
            f"{words} it is not certain that {name} {verb} faster or slower than the best other,"
            f" {_rival(analysis, points)}: the ratio is"
            f" {_range([p.ratio.value for p in points], ' to ')}, within its intervals or"
            f" {100 * threshold(analysis):.0f} %."
        )
    elif len(verdicts) == 1:
        verdict = next(iter(verdicts))
        place = "the next best" if verdict == FASTER else "the best other"
        sentence = (
            f"{words} {name} {verb} {_times(points, verdict)} {verdict} than"
            f" {place}, {_rival(analysis, points)}."
        )
    else:
        parts = []
        for verdict in (FASTER, SLOWER):
            some = [point for point in points if point.verdict == verdict]
            if some:
                parts.append(f"{_times(some, verdict)} {verdict} at {_sizes(some, len(points))}")
        same = [point for point in points if point.verdict == SAME]
        if same:
            parts.append(f"without a certain difference at {_sizes(same, len(points))}")
        sentence = f"{words} {name} {verb} {_join(parts)}, beside {_rival(analysis, points)}."
    return Finding(
        subject.cell.experiment, subject.cell.operation, size_class, subject.library, points,
        sentence,
    )  # fmt: skip


def short_label(analysis: Analysis, library: str) -> str:
    """A library's label without the version of Möbius, and without an origin that adds nothing."""
    if analysis.results.kind(library) == "mobius":
        return "Möbius"
    short = [analysis.results.label(name).partition(" (")[0] for name in analysis.libraries]
    mine = analysis.results.label(library)
    return mine.partition(" (")[0] if short.count(mine.partition(" (")[0]) == 1 else mine


def _times(points: list[Point] | tuple[Point, ...], verdict: str) -> str:
    values = [p.ratio.value if verdict == FASTER else 1 / p.ratio.value for p in points]
    return f"{_range(values, ' to ')} times"


def _range(values: list[float], between: str) -> str:
    low, high = format_ratio(min(values)), format_ratio(max(values))
    return low if low == high else f"{low}{between}{high}"


def _sizes(points: list[Point], total: int) -> str:
    names = list(dict.fromkeys(format_bytes(point.size) for point in points))
    if len(points) <= 3 and len(names) == len(
        points
    ):  # 4,000 and 4,096 bytes are both shown as 4 KB
        return _join(names)
    return f"{len(points)} of {total} sizes"


def _join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _rival(analysis: Analysis, points: tuple[Point, ...]) -> str:
    """The rival of a size class, with its style."""
    rival = points[0].rival
    return f"{short_label(analysis, rival.library)} ({rival.cell.style})"


def limit_sentences(analysis: Analysis) -> list[str]:
    """How close the subject is to the machine's limits, and the cost of two-sided messages."""
    sentences: list[str] = []
    if not analysis.sizes:
        return sentences
    mobius = next(
        (name for name in analysis.libraries if analysis.results.kind(name) == "mobius"), None
    )
    small, large = _latency_size(analysis), analysis.sizes[-1]
    for experiment, limit_operation, size, limit_words in (
        ("pingpong", "line", small, "the time in which two threads exchange a cache line"),
        ("completion", "copy", large, "the time of memcpy"),
    ):
        limits = [s for s in analysis.of(experiment, limit_operation) if size in s.summaries]
        own = analysis.best(experiment, "put", mobius) if mobius else None
        if not limits or own is None or size not in own.summaries:
            continue
        if not analysis.comparable(own, limits[0], size):
            continue
        ratio = analysis.ratio(own, limits[0], size)
        action = "reaches a polling partner" if experiment == "pingpong" else "completes"
        sentences.append(
            f"A put of {format_bytes(size)} {action} in {format_ns(own.summaries[size].median)},"
            f" {format_ratio(ratio.value)} times {limit_words}"
            f" ({format_ns(limits[0].summaries[size].median)})."
        )
    messages = [s for s in analysis.of("pingpong", "sendrecv") if small in s.summaries]
    own = analysis.best("pingpong", "put", mobius) if mobius else None
    if own is not None and small in own.summaries:
        messages = [one for one in messages if analysis.comparable(own, one, small)]
    if messages and own is not None and small in own.summaries:
        fastest = min(messages, key=lambda series: series.summaries[small].median)
        ratio = analysis.ratio(fastest, own, small)
        sentences.append(
            f"The fastest two-sided send/receive of {format_bytes(small)}"
            f" ({short_label(analysis, fastest.library)}) takes"
            f" {format_ns(fastest.summaries[small].median)} one way, {format_ratio(ratio.value)}"
            " times the put of Möbius."
        )
    return sentences


def _latency_size(analysis: Analysis) -> int:
    return 8 if 8 in analysis.sizes else analysis.sizes[0]


def trouble_sentence(analysis: Analysis) -> str:
    """The number of cells without a complete set of times, in words; "" if all have one."""
    cells: dict[str, set[tuple[str, Cell]]] = {}
    for outcome in analysis.results.outcomes:
        cells.setdefault(outcome.status, set()).add((outcome.library, outcome.cell))
    words = {
        "wrong": "delivered wrong data",
        "crashed": "crashed",
        "hung": "hung",
        "refused": "refused",
    }
    parts = [
        f"{len(cells[status])} {text} ({_join(_labels(analysis, cells[status]))})"
        for status, text in words.items()
        if status in cells
    ]
    missing = [
        f"{record.label} could not be measured ({record.detail})"
        for record in analysis.results.libraries.values()
        if record.status != "ready"
    ]
    text = f"Not measured everywhere: of the cells, {_join(parts)}." if parts else ""
    return " ".join([text, *(f"{sentence}." for sentence in missing)]).strip()


def _labels(analysis: Analysis, cells: set[tuple[str, Cell]]) -> list[str]:
    return sorted({short_label(analysis, library) for library, _ in cells})


def _flattery(finding: Finding) -> tuple[int, float]:
    verdicts = {point.verdict for point in finding.points}
    return (0 if SLOWER in verdicts else 1 if SAME in verdicts else 2), finding.worst


def most_important(findings: list[Finding]) -> list[str]:
    """Three: small puts completed, small puts passed on, and of the rest the least flattering.

    That is where the subject is certainly slower, if it is anywhere.
    """
    chosen = [
        finding
        for experiment in ("completion", "pingpong")
        for finding in findings
        if finding.experiment == experiment
        and finding.operation == "put"
        and finding.size_class.name == "small"
    ]
    rest = sorted((f for f in findings if f not in chosen), key=_flattery)
    return [finding.sentence for finding in [*chosen, *rest][:3]]

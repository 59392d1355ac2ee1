# SPDX-License-Identifier: BSD-3-Clause
"""The applications of paper 5: LU (figures 5 and 6), molecular dynamics of water (figure 7), and
programs of Global Arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Final

from mobius_instrument.cells import Cell, format_ns, format_ratio
from mobius_instrument.experiments import MATRIX_ELEMENT_BYTES, MOLECULE_BYTES
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.analysis import Series
from mobius_instrument.presentation.chapters.base import (
    Book,
    Chapter,
    figures,
    listing,
    note,
    numbers,
    paragraph,
    ratio_cell,
    time_cell,
)
from mobius_instrument.presentation.charts import Axis, Curve

_PROCESSES: Final = Axis("processes", "number", log=False)
_SPEED_UP: Final = Axis("speed-up", "number", log=False)
_IDEAL: Final = "ideal: as many times as fast"
_SOURCE: Final = (
    "Nieplocha, Ju, Straatsma, A Multiprotocol Communication Support for the Global Address Space"
    " Programming Model on the IBM SP, 2000. It gives its results as curves only."
)


@dataclass
class Variant:
    """One program in one setting, with one to N processes."""

    library: str
    cell: Cell  # without its number of processes
    by_count: dict[int, Series] = field(default_factory=dict)

    def time(self, count: int, size: int) -> float | None:
        """The median of so many processes, in nanoseconds."""
        series = self.by_count.get(count)
        return series.summaries[size].median if series and size in series.summaries else None

    @property
    def shares_memory(self) -> bool:
        """Not if each process has a virtual host of its own."""
        return not self.cell.option("by")


@dataclass(frozen=True)
class _Part:
    """What a chapter shows of an application: its variants, the titles of its sizes, and what a
    time is of."""

    variants: list[Variant]
    title: str  # with a place for the count
    count: Callable[[int], int]  # that a size has of rows, or of molecules
    per: str


def _variants(book: Book, experiment: str) -> list[Variant]:
    found: dict[tuple[str, Cell], Variant] = {}
    for series in book.of(experiment):
        if not series.summaries:
            continue
        cell = series.cell.without("procs")
        variant = found.setdefault((series.library, cell), Variant(series.library, cell))
        variant.by_count[int(series.cell.option("procs", "1"))] = series
    return list(found.values())


def _share(book: Book, variant: Variant, count: int, size: int, name: str) -> float | None:
    """The average of a share of the time."""
    series = variant.by_count.get(count)
    facts = book.facts.get((variant.library, series.cell), []) if series else []
    values = [one.number for one in facts if one.name == name and one.detail == str(size)]
    return sum(values) / len(values) if values else None


def _share_cell(value: float | None) -> str:
    if value is None:
        return '<td class="n none">–</td>'
    return tables.number(f"{100 * value:.1f} %", value)


def _share_words(book: Book, variant: Variant, count: int, size: int) -> str:
    """Behind a time: how much of it is communication."""
    share = _share(book, variant, count, size, "communication")
    return f", {100 * share:.1f} % of it communication" if share is not None else ""


def _words(variant: Variant) -> str:
    """The setting of a variant."""
    option = variant.cell.option
    words = []
    if variant.cell.operation == "sendrecv":
        words.append("with messages")
    if option("placement"):
        words.append(option("placement"))
    if option("copy"):
        words.append("copying")
    if option("balance"):
        words.append("no balance")
    if option("permute"):
        words.append("no permutation")
    if not variant.shares_memory:
        words.append("no shared memory")
    return ", ".join(words)


def _name(book: Book, variant: Variant) -> str:
    library = "threads" if variant.cell.memory == "threads" else book.label(variant.library)
    words = _words(variant)
    return f"{library}: {words}" if words else library


def _spoken(book: Book, variant: Variant) -> str:
    """The name within a sentence."""
    words = _words(variant)
    return book.label(variant.library) + (f" ({words})" if words else "")


def _head(book: Book, variant: Variant) -> str:
    dot = tables.dot(book.looks.get(variant.library))
    return dot + escape(_name(book, variant))


def _reference(variants: list[Variant], size: int) -> float | None:
    """The fastest time of one process; of threads, if there are some."""
    threads = [one for one in variants if one.cell.memory == "threads"]
    times = [one.time(1, size) for one in threads or variants]
    return min((time for time in times if time is not None), default=None)


def _chart(book: Book, shown: list[Variant], counts: list[int], size: int, title: str) -> str:
    """Speed-up by processes: of programs that differ in their placement only, the fastest one."""
    reference = _reference(shown, size)
    if reference is None or len(counts) < 2:
        return ""
    fastest: dict[tuple[str, Cell], Variant] = {}
    for one in sorted(shown, key=lambda one: one.time(counts[-1], size) or math.inf):
        fastest.setdefault((one.library, one.cell.without("placement")), one)
    curves = [Curve(_IDEAL, "", [(n, n) for n in counts], 2)]
    styles: dict[str, int] = {}
    for one in shown:
        if one not in fastest.values():
            continue
        style = styles[one.library] = styles.get(one.library, -1) + 1
        points = [(n, reference / time) for n in counts if (time := one.time(n, size))]
        # What sets some programs apart makes no difference to one process.
        own = [two for two in shown if two.library == one.library]
        if (start := _fastest(own, 1, size, lambda _: True)) and points[0][0] > 1:
            points.insert(0, (1, reference / start[1]))
        mine = book.is_mobius(one.library)
        curves.append(Curve(_name(book, one), one.library, points, style, mine))
    return book.charts.figure(f"{title}: speed-up", _PROCESSES, _SPEED_UP, curves)


def _table(
    book: Book, shown: list[Variant], counts: list[int], size: int, title: str, per: str
) -> str:
    reference = _reference(shown, size)
    most = counts[-1]
    best = min((time for one in shown if (time := one.time(most, size))), default=None)
    rows = []
    for one in shown:
        last = one.time(most, size)
        rows.append(
            [_head(book, one),
             *(time_cell(one.time(n, size), best if n == most else None) for n in counts),
             ratio_cell(reference / last if reference and last else None),
             _share_cell(_share(book, one, most, size, "communication")),
             _share_cell(_share(book, one, most, size, "waiting"))]
        )  # fmt: skip
    head = (
        "program", *(f"{per}, {n} {'process' if n == 1 else 'processes'}" for n in counts),
        f"speed-up, {most}", f"communication, {most}", f"waiting, {most}",
    )  # fmt: skip
    table = tables.table(head, rows, 1, sortable=True)
    return numbers(table, title)


def _sizes(variants: Iterable[Variant]) -> list[int]:
    return sorted({n for one in variants for series in one.by_count.values()
                   for n in series.summaries})  # fmt: skip


def _order(size: int) -> int:
    """Rows of a matrix of so many bytes."""
    return math.isqrt(size // MATRIX_ELEMENT_BYTES)


def _molecules(size: int) -> int:
    return size // MOLECULE_BYTES


def _chapter(
    book: Book,
    identity: tuple[str, str],
    parts: Iterable[_Part],
    sentences: list[str],
    about: str,
    paper: str = "",
) -> Chapter:
    """Pictures first, what they say, all numbers, how they came about, and what the paper found."""
    charts, figures_of = [], []
    for part in parts:
        for size in _sizes(part.variants):
            shown = [one for one in part.variants if any(one.time(n, size) for n in one.by_count)]
            counts = sorted({n for one in shown for n in one.by_count if one.time(n, size)})
            title = part.title.format(part.count(size))
            charts.append(_chart(book, shown, counts, size, title))
            figures_of.append(_table(book, shown, counts, size, title, part.per))
    html = (
        figures(*charts)
        + "".join(map(paragraph, sentences))
        + (f"<h4>What paper 5 found</h4>{paragraph(paper)}{note(_SOURCE)}" if paper else "")
        + "".join(figures_of)
        + f"<h4>What was measured</h4>{paragraph(about)}"
    )
    return Chapter(*identity, html, tuple(sentences))


def _sentences(
    variants: list[Variant], say: Callable[[int, int], Iterable[str]], most: int
) -> list[str]:
    """What `say` has to say of the largest number of processes and each size: in turn something of
    every size, at most so many in all."""
    count = max((n for one in variants for n in one.by_count), default=1)
    said = [list(say(count, size)) for size in _sizes(variants)]
    longest = max(map(len, said), default=0)
    ordered = [texts[n] for n in range(longest) for texts in said if n < len(texts)]
    return ordered[:most]


def _fastest(
    variants: list[Variant], count: int, size: int, wanted: Callable[[Variant], bool]
) -> tuple[Variant, float] | None:
    found = [(one, time) for one in variants if wanted(one) and (time := one.time(count, size))]
    return min(found, key=lambda pair: pair[1]) if found else None


def _compared(
    book: Book, variants: list[Variant], count: int, size: int,
    first: tuple[Variant, float] | None, wanted: Callable[[Variant], bool],
) -> tuple[Variant, float] | None:  # fmt: skip
    """The fastest variant of some that may be compared with `first`, and how many times as long it
    takes."""
    if first is None:
        return None
    series = first[0].by_count[count]
    found = _fastest(
        variants, count, size,
        lambda one: wanted(one) and count in one.by_count
        and book.analysis.comparable(series, one.by_count[count], size),
    )  # fmt: skip
    return (found[0], found[1] / first[1]) if found else None


_MOST_SENTENCES: Final = 3


def lu_chapter(book: Book) -> Chapter | None:
    """LU, if it was measured."""
    variants = _variants(book, "lu")
    if not variants:
        return None
    by_kernel = {
        kernel: [one for one in variants if one.cell.option("kernel") == kernel]
        for kernel in ("plain", "blas")
    }
    plain = by_kernel["plain"]

    def say(count: int, size: int) -> Iterable[str]:
        mine = _fastest(
            plain, count, size, lambda one: book.is_mobius(one.library) and one.shares_memory
        )
        threads = _compared(
            book, plain, count, size, mine, lambda one: one.cell.memory == "threads"
        )
        apart = _compared(
            book, plain, count, size, mine,
            lambda one: book.is_mobius(one.library) and not one.shares_memory,
        )  # fmt: skip
        if mine and threads:
            yield (
                f"LU of {_order(size)} rows: {count} processes over Möbius have"
                f" {format_ratio(threads[1])} times the speed of {count} threads"
                f" ({format_ns(mine[1])}{_share_words(book, mine[0], count, size)}); in paper 5"
                " both are alike."
            )
        if mine and apart:
            yield (
                f"LU of {_order(size)} rows without shared memory between the processes takes"
                f" {format_ratio(apart[1])} times as long"
                f"{_share_words(book, apart[0], count, size)}."
            )

    return _chapter(
        book,
        ("lu", "LU"),
        [
            _Part(by_kernel[kernel], f"LU, {{}} rows, {words}", _order, "time")
            for kernel, words in (("plain", "plain loops"), ("blas", "BLAS"))
        ],
        _sentences(plain, say, _MOST_SENTENCES),
        "SPLASH-2's blocked LU factorisation (apps/lu) in blocks of 32. Block placement gives each"
        " process one rectangle of the matrix, cyclic deals out neighbouring blocks to different"
        " ones, hybrid has ranges for hosts and is cyclic within each. The pictures show the"
        " fastest placement of each program. Over Möbius, blocks of processes of the same host are"
        " read in place, or copied first, as over the other libraries. No shared memory: each"
        " process on a virtual host. Waiting is for processes that have more to compute. Speed-up"
        " is against one thread. All results are verified.",
        "Figure 5, one host with four processors, 3072 rows: processes over ARMCI are as fast as"
        " threads with the same placement, and cyclic is faster than block because it balances the"
        " load. Figure 6, several hosts: block is faster there, since it keeps transfers on a host;"
        " the hybrid is as good as the better one of the two everywhere; sharing memory within"
        " hosts gains more the more processors there are.",
    )


def _ends(book: Book, variants: list[Variant]) -> tuple[str, bool]:
    """Whether the checksums of all runs of a size are the same: in words, and false if not."""
    ends: dict[str, dict[str, list[str]]] = {}  # size → checksum → runs
    for one in variants:
        for count, series in one.by_count.items():
            for fact in book.facts.get((one.library, series.cell), []):
                if fact.name == "checksum":
                    run = f"{_name(book, one)}, {count} processes, {_molecules(int(fact.detail))}"
                    ends.setdefault(fact.detail, {}).setdefault(fact.value, []).append(run)
    if not ends:
        return "", True
    others: dict[str, None] = {}
    for by_checksum in ends.values():
        usual = max(by_checksum.values(), key=len)
        for runs in by_checksum.values():
            others |= {} if runs is usual else dict.fromkeys(runs)
    if not others:
        return "Every run ended with the same positions and velocities, bit for bit.", True
    listed = "; ".join(f"{run} molecules" for run in others)
    return f"Not the trajectory of most runs: {listed}.", False


def md_chapter(book: Book) -> Chapter | None:
    """Water, if it was measured."""
    variants = _variants(book, "md")
    if not variants:
        return None
    ends, alike = _ends(book, variants)

    def say(count: int, size: int) -> Iterable[str]:
        mine = _fastest(
            variants, count, size, lambda one: book.is_mobius(one.library) and one.shares_memory
        )
        if mine is None:
            return
        parts = [
            f"{_spoken(book, found[0])} takes {format_ratio(found[1])} times as long"
            for one in variants
            if one.cell.operation == "sendrecv" or not one.shares_memory
            if (found := _compared(book, [one], count, size, mine, lambda _: True))
        ]
        rest = f"; {listing(parts)}" if parts else ""
        yield (
            f"Water, {_molecules(size)} molecules: a step of {count} processes over Möbius takes"
            f" {format_ns(mine[1])}{_share_words(book, mine[0], count, size)}{rest}."
        )

    sentences = _sentences(variants, say, _MOST_SENTENCES)
    return _chapter(
        book,
        ("md", "Water"),
        [_Part(variants, "Water, {} molecules", _molecules, "step")],
        sentences if alike else [ends, *sentences],
        "Molecular dynamics of liquid water (apps/md): cells of space are dealt out to processes,"
        " which get positions from each other and add forces to them. With messages: the same"
        " program with MPI's sends and receives. No balance: nobody takes work of others. No shared"
        " memory: each process on a virtual host, as paper 5's program before ARMCI shared memory."
        " Speed-up is against the fastest single process."
        f"{f' {ends}' if ends and alike else ''}",
        "Figure 7: the simulation had scaled nearly linearly up to 32 processors. Shared memory"
        " within hosts of four processors, and process numbers permuted so that neighbours in space"
        " are on one host, made it 12.6 % faster on 64 processors.",
    )


def global_arrays_chapter(book: Book) -> Chapter | None:
    """Global Arrays, if it was measured."""
    variants = _variants(book, "global-arrays")
    if not variants:
        return None
    parts, sentences = [], []
    for operation, words in (("product", "product"), ("patches", "patches got and accumulated")):
        some = [one for one in variants if one.cell.operation == operation]
        parts.append(_Part(some, f"Global Arrays, {{}} rows, {words}", _order, "time"))

        def say(
            count: int, size: int, words: str = words, some: list[Variant] = some
        ) -> Iterable[str]:
            mine = _fastest(some, count, size, lambda one: one.library == "armci")
            others = [
                f"{format_ratio(found[1])} times as long over {book.label(one.library)}"
                for one in some
                if one.library != "armci"
                and (found := _compared(book, [one], count, size, mine, lambda _: True))
            ]
            if others:
                yield (
                    f"Global Arrays, {words} ({_order(size)} rows, {count} processes):"
                    f" {listing(others)} as over ARMCI on Möbius."
                )

        sentences += _sentences(some, say, _MOST_SENTENCES)
    return _chapter(
        book,
        ("global-arrays", "Global Arrays"),
        parts,
        sentences,
        "Debian's Global Arrays (apps/ga), linked with our ARMCI and with its own, ARMCI-MPI, over"
        " each MPI of Debian's. A product of distributed matrices; and tasks from a shared counter,"
        " as in NWChem, each of which gets two patches of 24 x 24 elements and accumulates into a"
        " third. A program with a wrong result is not shown; over MPICH 4.0, ARMCI-MPI is told not"
        " to use MPI_Win_allocate(), with which its results are wrong. Paper 5 has no figure of"
        " Global Arrays alone: its water program is written with them.",
    )

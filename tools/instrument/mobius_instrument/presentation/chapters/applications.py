# SPDX-License-Identifier: BSD-3-Clause
"""The applications of paper 5: LU (figures 5 and 6) and molecular dynamics of water (figure 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    paragraph,
    ratio_cell,
    time_cell,
)
from mobius_instrument.presentation.charts import Axis, Curve

_PROCESSES: Final = Axis("processes", "number")
_SPEED_UP: Final = Axis("speed-up", "number")
_SOURCE: Final = (
    "Nieplocha, Ju, Straatsma, A Multiprotocol Communication Support for the Global Address Space"
    " Programming Model on the IBM SP, 2000."
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
    if option("by"):
        words.append("no shared memory")
    return ", ".join(words)


def _name(book: Book, variant: Variant) -> str:
    library = "threads" if variant.cell.memory == "threads" else book.label(variant.library)
    words = _words(variant)
    return f"{library}: {words}" if words else library


def _head(book: Book, variant: Variant) -> str:
    dot = tables.dot(book.looks.get(variant.library))
    return dot + escape(_name(book, variant))


def _reference(variants: list[Variant], size: int) -> float | None:
    """The fastest time of one process; of threads, if there are some."""
    threads = [one for one in variants if one.cell.memory == "threads"]
    times = [one.time(1, size) for one in threads or variants]
    return min((time for time in times if time is not None), default=None)


def _section(
    book: Book, variants: list[Variant], size: int, title: str, per: str
) -> tuple[str, str]:
    """Curve and table of one size."""
    shown = [one for one in variants if any(one.time(n, size) for n in one.by_count)]
    counts = sorted({n for one in shown for n in one.by_count if one.time(n, size)})
    if not counts:
        return "", ""
    reference = _reference(shown, size)
    curves = []
    for place, one in enumerate(shown):
        times = [(n, one.time(n, size)) for n in counts]
        points = [(n, reference / time) for n, time in times if time and reference]
        curves.append(
            Curve(_name(book, one), one.library, points, place, book.is_mobius(one.library))
        )
    chart = book.charts.figure(f"{title}: speed-up", _PROCESSES, _SPEED_UP, curves)
    most = counts[-1]
    rows = []
    for one in shown:
        last = one.time(most, size)
        rows.append(
            [_head(book, one), *(time_cell(one.time(n, size)) for n in counts),
             ratio_cell(reference / last if reference and last else None),
             _share_cell(_share(book, one, most, size, "communication")),
             _share_cell(_share(book, one, most, size, "waiting"))]
        )  # fmt: skip
    head = (
        "program", *(f"{per}, {n} {'process' if n == 1 else 'processes'}" for n in counts),
        f"speed-up, {most}", f"communication, {most}", f"waiting, {most}",
    )  # fmt: skip
    return chart, f"<h4>{escape(title)}</h4>" + tables.table(head, rows, 1, sortable=True)


def _sizes(variants: list[Variant]) -> list[int]:
    return sorted({n for one in variants for series in one.by_count.values()
                   for n in series.summaries})  # fmt: skip


def _order(size: int) -> int:
    """Rows of a matrix of so many bytes."""
    return math.isqrt(size // MATRIX_ELEMENT_BYTES)


def _molecules(size: int) -> int:
    return size // MOLECULE_BYTES


def _sections(
    book: Book, variants: list[Variant], title: str, count: Callable[[int], int], per: str
) -> str:
    """The curves of all sizes, and their tables below; `title` has a place for the count."""
    found = [
        _section(book, variants, size, title.format(count(size)), per) for size in _sizes(variants)
    ]
    return figures(*(chart for chart, _ in found)) + "".join(table for _, table in found)


def _fastest(
    variants: list[Variant], count: int, size: int, wanted: Callable[[Variant], bool]
) -> tuple[Variant, float] | None:
    found = [(one, time) for one in variants if wanted(one) and (time := one.time(count, size))]
    return min(found, key=lambda pair: pair[1]) if found else None


def _most_count(variants: list[Variant]) -> int:
    return max((n for one in variants for n in one.by_count), default=1)


def _lu_sentences(book: Book, variants: list[Variant]) -> list[str]:
    found = []
    count = _most_count(variants)
    for size in _sizes(variants):
        plain = [one for one in variants if one.cell.option("kernel") == "plain"]
        threads = _fastest(plain, count, size, lambda one: one.cell.memory == "threads")
        mine = _fastest(plain, count, size, lambda one: book.is_mobius(one.library))
        if threads and mine:
            found.append(
                f"LU of {_order(size)} rows: {count} processes over Möbius have"
                f" {format_ratio(threads[1] / mine[1])} times the speed of {count} threads"
                f" ({format_ns(mine[1])}); in paper 5 both are alike."
            )
    return found


def lu_chapter(book: Book) -> Chapter | None:
    """LU, if it was measured."""
    variants = _variants(book, "lu")
    if not variants:
        return None
    parts = [
        _sections(
            book,
            [one for one in variants if one.cell.option("kernel") == kernel],
            f"LU, {{}} rows, {words}",
            _order,
            "time",
        )
        for kernel, words in (("plain", "plain loops"), ("blas", "BLAS"))
    ]
    html = "".join(
        (
            paragraph(
                "SPLASH-2's blocked LU factorisation (apps/lu) in blocks of 32. Block placement"
                " gives each process one rectangle of the matrix, cyclic deals out neighbouring"
                " blocks to different ones, hybrid has rectangles for hosts and is cyclic within"
                " each. Over Möbius, blocks of processes of the same host are read in place, or"
                " copied first, as over the other libraries. No shared memory: each process on a"
                " virtual host. Speed-up is against one thread. All results are verified."
            ),
            *parts,
            "<h4>What paper 5 found</h4>",
            paragraph(
                "Figure 5, one host with four processors, 3072 rows: processes over ARMCI are as"
                " fast as threads with the same placement, and cyclic is faster than block because"
                " it balances the load. Figure 6, several hosts: block is faster there, since it"
                " keeps transfers on a host; the hybrid is as good as the better one of the two"
                " everywhere; sharing memory within hosts gains more the more processors there"
                " are."
            ),
            note(_SOURCE + " It gives these figures as curves only."),
        )
    )
    return Chapter("lu", "LU", html, tuple(_lu_sentences(book, variants)))


def _md_sentences(book: Book, variants: list[Variant]) -> list[str]:
    found = []
    count = _most_count(variants)
    for size in _sizes(variants):
        mine = _fastest(
            variants, count, size,
            lambda one: book.is_mobius(one.library) and not one.cell.option("by"),
        )  # fmt: skip
        if mine is None:
            continue
        parts = []
        for one in variants:
            time = one.time(count, size)
            if time and (one.cell.operation == "sendrecv" or one.cell.option("by")):
                parts.append(f"{format_ratio(time / mine[1])} times as long: {_name(book, one)}")
        share = _share(book, mine[0], count, size, "communication")
        said = f", {100 * share:.1f} % of it communication" if share is not None else ""
        rest = f"; {listing(parts)}" if parts else ""
        found.append(
            f"Water, {_molecules(size)} molecules: a step of {count} processes over Möbius takes"
            f" {format_ns(mine[1])}{said}{rest}."
        )
    return found


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
    html = "".join(
        (
            paragraph(
                "Molecular dynamics of liquid water (apps/md): cells of space are dealt out to"
                " processes, which get positions from each other and add forces to them. With"
                " messages: the same program with MPI's sends and receives. No balance: nobody"
                " takes work of others. No shared memory: each process on a virtual host, as"
                " paper 5's program before ARMCI shared memory. Speed-up is against the fastest"
                f" single process. {ends}"
            ),
            _sections(book, variants, "Water, {} molecules", _molecules, "step"),
            "<h4>What paper 5 found</h4>",
            paragraph(
                "Figure 7: the simulation had scaled nearly linearly up to 32 processors. Shared"
                " memory within hosts of four processors, and process numbers permuted so that"
                " neighbours in space are on one host, made it 12.6 % faster on 64 processors."
            ),
            note(_SOURCE + " It gives this figure as a curve only."),
        )
    )
    sentences = _md_sentences(book, variants)
    return Chapter("md", "Water", html, tuple(sentences if alike else [ends, *sentences]))


def global_arrays_chapter(book: Book) -> Chapter | None:
    """Global Arrays, if it was measured."""
    variants = _variants(book, "global-arrays")
    if not variants:
        return None
    parts, sentences = [], []
    count = _most_count(variants)
    for operation, words in (("product", "product"), ("patches", "patches got and accumulated")):
        some = [one for one in variants if one.cell.operation == operation]
        parts.append(_sections(book, some, f"Global Arrays, {{}} rows, {words}", _order, "time"))
        for size in _sizes(some):
            mine = _fastest(some, count, size, lambda one: one.library == "armci")
            others = [
                f"{format_ratio(time / mine[1])} times as long over {book.label(one.library)}"
                for one in some
                if mine and one.library != "armci" and (time := one.time(count, size))
            ]
            if others:
                sentences.append(
                    f"Global Arrays, {words} ({_order(size)} rows, {count} processes):"
                    f" {listing(others)} as over ARMCI on Möbius."
                )
    html = "".join(
        (
            paragraph(
                "Debian's Global Arrays, linked with our ARMCI and with its own, ARMCI-MPI. A"
                " product of distributed matrices; and tasks from a shared counter, as in NWChem,"
                " each of which gets two patches of 24 x 24 elements and accumulates into a third."
                " A program with a wrong result is not shown."
            ),
            *parts,
        )
    )
    return Chapter("global-arrays", "Global Arrays", html, tuple(sentences))

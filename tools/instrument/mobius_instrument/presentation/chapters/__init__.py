# SPDX-License-Identifier: BSD-3-Clause
"""The chapters on the test-suite's experiments. Each module makes one or a few of a results file,
and sentences for the first page; a chapter whose experiment was not measured is left out."""

from __future__ import annotations

from mobius_instrument.presentation.chapters import (
    apex,
    applications,
    changes,
    contention,
    datatypes,
    dynamic,
    hosts,
    matrix,
    on_mobius,
    paper1,
    paper5,
    progress,
    schedule,
    streams,
    sync_cost,
    trust,
)
from mobius_instrument.presentation.chapters.base import Book, Chapter
from mobius_instrument.results import Results

_WITH_BOTH = ("paper1", "paper5")


def write_chapters(
    book: Book, earlier: Results | None = None, between: Book | None = None
) -> list[Chapter]:
    """All chapters that there is something for, in the order of the page. With an earlier run, what
    changed since comes first; with measurements between hosts, those come next, and behind
    each chapter the same between hosts."""
    made = [
        changes.chapter(book, earlier) if earlier else None,
        on_mobius.chapter(book),
        paper1.chapter(book, between),
        sync_cost.chapter(book),
        paper5.chapter(book, between),
        streams.chapter(book),
        datatypes.chapter(book),
        datatypes.multi_op_chapter(book),
        progress.chapter(book),
        progress.overlap_chapter(book),
        *contention.chapters(book),
        apex.chapter(book),
        applications.lu_chapter(book),
        applications.md_chapter(book),
        applications.global_arrays_chapter(book),
        dynamic.chapter(book),
        schedule.chapter(book),
        matrix.chapter(book),
        trust.chapter(book),
    ]
    chapters = [chapter for chapter in made if chapter is not None]
    if between is not None:
        place = 1 if earlier else 0
        # Some have both sides already.
        apart = [one for one in write_chapters(between) if one.identifier not in _WITH_BOTH]
        chapters.insert(place, hosts.chapter(book, between, apart))
    return chapters


__all__ = ["Book", "Chapter", "write_chapters"]

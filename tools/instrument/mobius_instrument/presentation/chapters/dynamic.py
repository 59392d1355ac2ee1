# SPDX-License-Identifier: BSD-3-Clause
"""Spawning (Table 1) and communicators that are made later (figures 1 to 4)."""

from __future__ import annotations

from html import escape

from mobius_instrument.cells import MESSAGES, Cell, format_bytes, format_ns, format_ratio
from mobius_instrument.presentation import tables
from mobius_instrument.presentation.chapters.base import (
    SIZE_AXIS,
    TIME_AXIS,
    Book,
    Chapter,
    curve,
    figures,
    note,
    numbers,
    paragraph,
    ratio_cell,
    time_cell,
)

_COUNTS = (1, 2, 3, 4)
# Two jobs that meet: the transfer of the cell, and how many processes each has.
_MEETINGS = (
    ("connect", 1),
    ("connect", 2),
    ("join", 1),
)
_PAPER = (
    ("SX-6, within a node", 4.1, 4.9, 5.9, 6.7),
    ("SX-6, between nodes", 18.7, 19.9, 19.8, 19.9),
    ("SR8000", 409.0, 419.0, 441.0, 461.0),
    ("Sun Fire 6800", 36.3, 40.5, 43.7, 40.4),
)


def _failure(book: Book, library: str, cell: Cell) -> str:
    outcomes = book.analysis.outcomes().get((library, cell), [])
    if not outcomes:
        return '<td class="none">–</td>'
    one = outcomes[0]
    return (
        f'<td class="{escape(one.status)}"><b>{escape(one.status)}</b>'
        f"<small>{escape(one.detail[:140])}</small></td>"
    )


def _planned(book: Book, experiment: str) -> dict[str, list[str]]:
    plan = book.analysis.results.plan.get("cells")
    cells = plan if isinstance(plan, dict) else {}
    return {
        library: [text for text in texts if text.startswith(experiment + ":")]
        for library, texts in cells.items()
        if any(text.startswith(experiment + ":") for text in texts)
    }


def _spawn_table(book: Book) -> tuple[str, list[str]]:
    rows, sentences = [], []
    for library in _planned(book, "spawn-cost"):
        spawn, disconnect = "MPI_Comm_spawn", "MPI_Comm_disconnect"
        if book.is_mobius(library):
            spawn, disconnect = "mob_spawn", "mob_bridge_disconnect"
        for part, words in (
            ("spawn", spawn), ("alive", "until all have answered"), ("disconnect", disconnect),
        ):  # fmt: skip
            row = [book.head(library), words]
            values = []
            for count in _COUNTS:
                cell = Cell.parse(f"spawn-cost:spawn:none:local:n={count}")
                summary = book.summary(library, cell.part(part), count)
                values.append(summary.median if summary else None)
                row.append(time_cell(summary.median) if summary else _failure(book, library, cell))
            if part == "spawn" and values[0] is not None:
                sentences.append(
                    f"{book.label(library)} spawns a process in {format_ns(values[0])}."
                )
            elif part != "spawn" and all(value is None for value in values):
                continue
            rows.append(row)
    rows += [
        [f"paper 3: {name}", "MPI_Comm_spawn", *(time_cell(value * 1e6) for value in values)]
        for name, *values in _PAPER
    ]
    head = ["library", "", *(f"{count} spawned" for count in _COUNTS)]
    return tables.table(head, rows, 2), sentences


def _meeting_table(book: Book) -> tuple[str, list[str]]:
    """What it costs that two running jobs connect; nothing where no library was to do so."""
    rows, sentences = [], []
    for library, texts in _planned(book, "spawn-cost").items():
        prefix = "mob_" if book.is_mobius(library) else "MPI_Comm_"
        for how, count in _MEETINGS:
            words = f"{prefix}{how}, {count} + {count} processes"
            cell = Cell.parse(f"spawn-cost:{how}:none:local:n={count}")
            if str(cell) not in texts:
                continue
            row, first = [book.head(library), words], None
            for part in ("connect", "alive", "disconnect"):
                summary = book.summary(library, cell.part(part), count)
                first = first or summary
                row.append(time_cell(summary.median) if summary else _failure(book, library, cell))
            rows.append(row)
            is_told = book.is_mobius(library) and (how, count) == ("connect", 1)
            if first is not None and is_told:
                sentences.append(
                    f"{book.label(library)} connects two processes in {format_ns(first.median)}."
                )
    if not rows:
        return "", []
    head = ["library", "", "connected", "all have answered", "disconnected"]
    return "<h3>What connecting costs</h3>" + paragraph(
        "Two jobs that were started one by one connect by a port, or join over a socket; the first"
        " of six times is left out. Connected: mob_accept, mob_join or MPI_Comm_accept has"
        " returned, from its call on; in MPI the port is open before, and the other side knows its"
        " name. All have answered: after a broadcast and a barrier; in Möbius, after both have made"
        " a team and allocated memory, and one has put into each process of the other."
        " Disconnected: how long mob_bridge_disconnect or MPI_Comm_disconnect takes after that."
    ) + tables.table(head, rows, 2), sentences


def _comm_section(book: Book) -> tuple[str, list[str]]:
    series = [one for one in book.of("dynamic-comm") if one.summaries]
    charts, rows, sentences = [], [], []
    sizes = sorted({size for one in series for size in one.summaries})
    for library in _planned(book, "dynamic-comm"):
        mine = [one for one in series if one.library == library]
        for words, operations, sync in (
            ("messages", MESSAGES, "none"), ("put, fence", ("put",), "fence"),
        ):  # fmt: skip
            chosen = [
                one for one in mine if one.cell.operation in operations and one.cell.sync == sync
            ]
            curves = [
                curve(book, one, one.cell.option("comm"), number)
                for number, one in enumerate(chosen)
            ]
            title = f"{book.label(library)}: {words} by communicator"
            charts.append(book.charts.figure(title, SIZE_AXIS, TIME_AXIS, curves, apart=True))
        for text in _planned(book, "dynamic-comm")[library]:
            cell = Cell.parse(text)
            if cell.option("comm") == "world":
                continue
            base_cell = Cell.parse(text.replace(f"comm={cell.option('comm')}", "comm=world"))
            one = next((one for one in mine if one.cell == cell), None)
            base = next((one for one in mine if one.cell == base_cell), None)
            row = [
                book.head(library),
                cell.option("comm"),
                cell.operation,
                f"{cell.sync}, {cell.memory}",
            ]
            if one is None:
                row.append(_failure(book, library, cell))
                row += ['<td class="n none">–</td>'] * (len(sizes) - 1)
            else:
                ratios = [
                    one.summaries[size].median / base.summaries[size].median
                    if base and size in one.summaries and size in base.summaries
                    else None
                    for size in sizes
                ]
                row += [ratio_cell(ratio) for ratio in ratios]
                known = [ratio for ratio in ratios if ratio is not None]
                if known and cell.operation in MESSAGES and max(known) > 1.5:
                    sentences.append(
                        f"In {book.label(library)} messages on a communicator made by"
                        f" {cell.option('comm')} take up to {format_ratio(max(known))} times as"
                        " long as on that of the start."
                    )
            rows.append(row)
    head = ["library", "communicator", "transfer", "how", *(format_bytes(size) for size in sizes)]
    table = numbers(tables.table(head, rows, 4, sortable=True))
    return figures(*charts) + table + note(
        "Time beside that of the static communicator."
    ), sentences


def chapter(book: Book) -> Chapter | None:
    """The chapter, if either was planned."""
    spawn, comm = _planned(book, "spawn-cost"), _planned(book, "dynamic-comm")
    if not spawn and not comm:
        return None
    html, sentences = "", []
    if spawn:
        table, said = _spawn_table(book)
        html += (
            "<h3>What spawning costs</h3>"
            + paragraph(
                "One process spawns others of the same program; the first of six times is left out."
                " All have answered: after a broadcast and a barrier; in Möbius, after a put into"
                " each and a barrier."
            )
            + table
        )
        sentences += said
        table, said = _meeting_table(book)
        html += table
        sentences += said
    if comm:
        section, said = _comm_section(book)
        html += (
            "<h3>Communicators beside the static one</h3>"
            + paragraph(
                "split and reordered: MPI_Comm_split. spawn: MPI_Comm_spawn and a merged"
                " communicator, in Möbius mob_spawn and a merged bridge; spawn-inter: messages on"
                " the intercommunicator. connect: MPI_Comm_accept and MPI_Comm_connect of two"
                " processes that were started together; applications: the same of two programs that"
                " were started one by one (of MPIs only with --full), in Möbius mob_accept and"
                " mob_connect; join: mob_join over a socket between two such programs."
            )
            + section
        )
        sentences += said
    return Chapter("dynamic", "Processes and communicators that come later", html, tuple(sentences))

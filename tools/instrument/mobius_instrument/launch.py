# SPDX-License-Identifier: BSD-3-Clause
"""One launch of a program: reads its lines as they come, and finds who failed when they stop."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mobius_instrument.cells import Cell, format_bytes
from mobius_instrument.errors import system_reason
from mobius_instrument.experiments import Job
from mobius_instrument.libraries.base import Library
from mobius_instrument.machine import shared_memory
from mobius_instrument.machine.crowd import Meter
from mobius_instrument.machine.distance import Distance, Ways, ways_of
from mobius_instrument.machine.processes import Ended, clean_environment, run_watched
from mobius_instrument.plan import Plan
from mobius_instrument.results import Outcome, Record
from mobius_instrument.turns.board import Board

_MOST_OUTPUT_BYTES: Final = 1 << 30
_DETAIL_CHARACTERS: Final = 300


@dataclass
class LaunchReport:
    """The results of one launch. `records` end with the launch's own."""

    records: list[Record] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    status: str = "ok"
    detail: str = ""
    # Nanoseconds of a cache line between the CPUs before and after the launch, if known.
    ways: Ways | None = None


@dataclass(frozen=True)
class Seat:
    """The place of a launch in a concert: its number on the board, and the group of each cell."""

    board: Board
    number: int
    groups: dict[str, int]


@dataclass
class _Open:
    """A cell that was begun: its records until it ends, and the sizes that it has measured."""

    pending: list[Record] = field(default_factory=list)
    measured: list[int] = field(default_factory=list)


class _OutputFile:
    """Reads the lines that the program has finished, and keeps an unfinished one for later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._half = b""

    def new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_MOST_OUTPUT_BYTES - self._offset)
        except OSError:
            return []
        self._offset += len(data)
        *lines, self._half = (self._half + data).split(b"\n")
        return lines

    @property
    def full(self) -> bool:
        return self._offset >= _MOST_OUTPUT_BYTES


class Launch:
    """Runs cells of one library once.

    `keep` receives the records of each cell as soon as it ended, so that an
    interrupted run has them. `tick` is called while waiting, and with the cell that has just
    ended, if one has. `distance` tells of the CPUs that it is pinned to. With a `seat` the launch
    takes turns with others.
    """

    def __init__(
        self,
        library: Library,
        plan: Plan,
        job: Job,
        pins: Sequence[int],
        stall_s: float,
        keep: Callable[[Sequence[Record]], None],
        tick: Callable[[str | None], None],
        distance: Distance,
        seat: Seat | None = None,
    ) -> None:
        self._seat = seat
        self._library = library
        self._plan = plan
        self._job = job
        self._pins = pins
        self._stall_s = stall_s
        self._keep = keep
        self._tick = tick
        # Pins are CPUs of this host; in a concert, the conductor looks how far they are.
        self._distance = Distance(None, ()) if library.hosts or seat else distance

    def run(self, cells: Sequence[str], repeat: int, index: int) -> LaunchReport:
        """Launches the program and returns when no process of it is left."""
        self._repeat = repeat
        self._cells = list(cells)
        self._asked = set(cells)
        self._report = LaunchReport()
        self._environment: dict[str, Any] = {}
        self._open: dict[str, _Open] = {}
        self._loose: list[Record] = []  # records that wait for the end of the launch
        self._done = False
        self._stray = 0
        self._astray = ""
        head = {"library": self._library.name, "repeat": repeat, "index": index}
        self._line_ns = self._distance.measure()
        self._meter = Meter()
        try:
            with tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as folder:
                ended = self._launch(cells, Path(folder))
        except BaseException as error:
            # Measured cells are kept; the unfinished cell is not, and will be measured again.
            if not isinstance(error, OSError):
                self._finish(head, cells, "interrupted", "interrupted")
                raise
            self._finish(head, cells, "failed", f"cannot start: {system_reason(error)}")
            return self._report
        status, detail = self._judge(ended)
        self._finish(head, cells, status, detail)
        return self._report

    @property
    def ended(self) -> list[str]:
        """The cells that have ended."""
        return list(self._report.ended)

    def _launch(self, cells: Sequence[str], folder: Path) -> Ended:
        out = folder / "out.jsonl"
        self._lines = _OutputFile(out)
        pins = () if self._library.hosts else self._pins
        arguments = self._plan.arguments(self._job, cells, str(out), pins)
        if self._seat is not None:
            groups = [str(self._seat.groups[cell]) for cell in cells]
            arguments += ["--turns", self._seat.board.place(self._seat.number)]
            arguments += ["--groups", ",".join(groups)]
        environment = {**self._library.environment, **self._job.environment, "LC_ALL": "C"}
        if self._job.by_messages:
            environment |= self._library.messages_environment
        hosts = self._library.hosts
        if hosts is None or hosts.shared_files:
            # Launchers leave session files in TMPDIR, which is removed after the launch.
            environment["TMPDIR"] = str(folder)
        else:
            folder = Path("/")  # Other hosts do not have this folder.
        segments = shared_memory.segments()
        try:
            return run_watched(
                [*self._command(), *arguments],
                environment=clean_environment(environment),
                folder=folder,
                stall_s=self._stall_s,
                progress=self._progress,
            )
        except BaseException as error:
            if not isinstance(
                error, Exception
            ):  # Interrupted: the lines that the program has written are still valid.
                self._progress()
            raise
        finally:
            shared_memory.remove_new(segments)

    def _command(self) -> tuple[str, ...]:
        job, library = self._job, self._library
        if job.by_messages and library.by_messages is not None:
            return library.by_messages(job.processes)
        if job.program in library.applications:
            return library.applications[job.program](job.start)
        assert library.suite is not None  # It has no jobs without one.
        return library.suite(job.start)

    def _is_asked(self, cell: str) -> bool:
        return cell in self._asked or cell.partition(":part=")[0] in self._asked

    def _progress(self) -> bool:
        lines = self._lines.new_lines()
        for line in lines:
            self._take(line)
        if not lines:
            self._tick(None)
        if self._seat is not None and self._seat.board.is_asleep(self._seat.number):
            return True
        return bool(lines) and not self._lines.full

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            kind, cell = record["type"], record.get("cell")
            if cell is not None and not self._is_asked(cell):
                raise ValueError(cell)
            self._take_record(kind, cell, record)
        except (ValueError, KeyError, TypeError, AttributeError):
            self._stray += 1

    def _take_record(self, kind: str, cell: str | None, record: dict[str, Any]) -> None:
        if kind == "environment":
            self._take_environment(record)
        elif kind == "library":
            self._environment["version"] = record["version"]
        elif kind == "done":
            self._done = True
        elif cell is not None:
            self._take_of_cell(kind, cell, record)

    def _take_of_cell(self, kind: str, cell: str, record: dict[str, Any]) -> None:
        if kind == "start":
            self._open[cell] = _Open()
            return
        whole = cell if cell in self._asked else cell.partition(":part=")[0]
        opened = self._open.setdefault(whole, _Open())
        if kind == "samples":
            opened.measured.append(int(record["bytes"]))
            opened.pending.append(self._own(record))
        elif kind == "fact":
            opened.pending.append(self._own(record))
        elif kind == "wrong":
            self._outcome(cell, int(record["bytes"]), "wrong", _wrong_detail(record))
        elif kind == "refused":
            # Some sizes may have been measured before the library returned an error.
            size = self._next_size(opened) if opened.measured else None
            self._outcome(cell, size, "refused", str(record["reason"]))
            self._end(cell)
        elif kind == "end":
            self._end(cell)

    def _own(self, record: dict[str, Any]) -> Record:
        return {**record, "library": self._library.name, "repeat": self._repeat}

    def _take_environment(self, record: dict[str, Any]) -> None:
        names = record.get("hostnames", [])
        if self._library.hosts and len(names) > 1 and len(set(names)) == 1:
            self._astray = f"all processes were started on {names[0]}"
        self._environment |= {name: value for name, value in record.items() if name != "type"}

    def _end(self, cell: str) -> None:
        if self._astray:  # The program wrote times, but for other sizes than those asked for.
            self._open[cell] = _Open()
            self._outcome(cell, None, "refused", self._astray)
        opened = self._open.pop(cell, None)
        self._keep(opened.pending if opened else [])
        self._report.ended.append(cell)
        self._tick(cell)

    def _outcome(self, cell: str, size_bytes: int | None, status: str, detail: str) -> None:
        outcome = Outcome(
            self._library.name,
            Cell.parse(cell),
            self._repeat,
            size_bytes,
            status,
            detail[:_DETAIL_CHARACTERS],
        )
        self._report.outcomes.append(outcome)
        whole = cell if cell in self._asked else cell.partition(":part=")[0]
        opened = self._open.get(whole)
        (opened.pending if opened else self._loose).append(outcome.to_record())

    def _blamed(self) -> str | None:
        """The cell that ran when the launch ended."""
        begun = list(self._open)
        if self._seat is None or len(begun) < 2:
            return begun[-1] if begun else None
        # The tasks of a program are the cells of a group, in their order.
        group = self._seat.groups[begun[0]]
        cells = [cell for cell in self._cells if self._seat.groups[cell] == group]
        task = self._seat.board.task(self._seat.number)
        return cells[task] if task < len(cells) and cells[task] in self._open else begun[-1]

    def _judge(self, ended: Ended) -> tuple[str, str]:
        """The status of the launch, and the outcome of the cell that began and did not end."""
        wrong = sum(outcome.status == "wrong" for outcome in self._report.outcomes)
        if ended.hung:
            status, how = "hung", f"wrote nothing for {self._stall_s:g} s and was ended"
        elif ended.signal_name:
            status, how = "crashed", f"ended by {ended.signal_name}"
        elif wrong and ended.exit_code == 1 and self._asked.issubset(self._report.ended):
            return "failed", "; ".join([f"wrong data ({wrong} sizes)", *self._remarks(ended)])
        elif ended.exit_code != 0 or not self._done:
            status, how = "failed", f"exit code {ended.exit_code}"
            if ended.exit_code == 0:
                how = "ended without having measured everything"
        else:
            return "ok", "; ".join(self._remarks(ended))
        if self._done and not ended.hung:
            return "failed", "; ".join([f"measured everything, then {how}", *self._remarks(ended)])
        # Output from before the hang is hardly about it.
        said = "" if ended.hung else _last_words(ended.output)
        detail = how + (f": {said}" if said else "")
        blamed = self._blamed()
        if blamed is not None:
            size = self._next_size(self._open[blamed])
            at = f"at {format_bytes(size)}, " if size else ""
            outcome = "hung" if ended.hung else "crashed"
            self._outcome(blamed, size, outcome, at + detail)
        return status, "; ".join([detail, *self._remarks(ended)])

    def _remarks(self, ended: Ended) -> list[str]:
        remarks = []
        if ended.leftovers:
            remarks.append(f"left behind and ended: {', '.join(ended.leftovers)}")
        if self._stray:
            remarks.append(f"{self._stray} lines of the program were not understood")
        return remarks

    def _next_size(self, opened: _Open) -> int | None:
        """The size being measured: the job measures sizes in order."""
        return next((size for size in self._job.sizes if size not in opened.measured), None)

    def _finish(self, head: Record, cells: Sequence[str], status: str, detail: str) -> None:
        # Of a cell that failed, what it measured before counts; others are launched again.
        failed = {str(outcome.cell) for outcome in self._report.outcomes}
        for cell, opened in self._open.items():
            if status != "interrupted" and cell in failed:
                self._loose += opened.pending
        self._report.status = status
        self._report.detail = detail
        taken = self._meter.taken()
        launch = {
            "type": "launch",
            **head,
            "cells": list(cells),
            "ended": self._report.ended,
            "experiment": self._job.experiment,
            "processes": self._job.processes,
            "status": status,
            "seconds": round(taken.seconds, 3),
            # In turns the other libraries are others, too: the record of the concert has both.
            "others_s": None if self._seat else round(taken.others_s, 2),
            "stolen_s": None if self._seat else round(taken.stolen_s, 2),
            "line_ns": [self._line_ns, self._distance.measure()],
            "turns": self._seat is not None,
            "detail": detail[: 2 * _DETAIL_CHARACTERS],
            "environment": self._environment,
        }
        self._report.ways = ways_of(launch)
        self._keep([*self._loose, launch])


def _wrong_detail(record: dict[str, Any]) -> str:
    size = format_bytes(int(record["bytes"]))
    if "reason" in record:
        return f"{size}: {record['reason']}"
    return (
        f"{size}: byte {record['first_wrong_byte']} is {record['got']}, expected"
        f" {record['expected']} ({record.get('where', 'data')})"
    )


def _last_words(output: str) -> str:
    """The line of a launcher's output that explains the end best."""
    lines = [line.strip(" =|*-\t") for line in output.splitlines()]
    lines = [line for line in lines if line]
    for line in reversed(lines):
        if line.startswith("suite_"):  # Messages of Möbius explain most.
            return line[:_DETAIL_CHARACTERS]
    for word in ("signal", "abort", "assert", "fault", "error"):
        for line in reversed(lines):
            if word in line.lower():
                return line[:_DETAIL_CHARACTERS]
    return lines[-1][:_DETAIL_CHARACTERS] if lines else ""

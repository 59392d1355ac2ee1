# SPDX-License-Identifier: BSD-3-Clause
"""A concert: launches of several libraries at once, which measure in turns of milliseconds.

Each launch is watched by a process of its own, a fork of this one, because a library's programs are
found and ended as descendants of who started them. The forks report through pipes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mobius_instrument.experiments import Job
from mobius_instrument.launch import Launch, LaunchReport, Seat
from mobius_instrument.libraries.base import Library
from mobius_instrument.machine.distance import Distance
from mobius_instrument.plan import Plan
from mobius_instrument.results import Outcome, Record
from mobius_instrument.turns.board import Board, Conductor, take_precedence

_POLL_S: Final = 0.1
# While programs are started one after the other.
_START_POLL_S: Final = 0.005
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Part:
    """A launch of a concert, with the group of each of its cells."""

    library: Library
    job: Job
    groups: dict[str, int]

    @property
    def cells(self) -> list[str]:
        """All cells, by their groups."""
        return sorted(self.groups, key=lambda cell: self.groups[cell])


@dataclass
class _Child:
    """The fork that watches a launch."""

    pid: int
    pipe: int
    rest: bytes = b""
    report: LaunchReport | None = None


class Concert:
    """Runs launches together. `keep` and `tick` are those of a Launch; `listen` gets each round."""

    def __init__(
        self,
        parts: Sequence[Part],
        plan: Plan,
        pins: Sequence[int],
        stall_s: float,
        conductor: Path,
        keep: Callable[[Sequence[Record]], None],
        tick: Callable[[str | None], None],
        listen: Callable[[Record], None],
    ) -> None:
        self._parts = parts
        self._plan = plan
        self._pins = pins
        self._stall_s = stall_s
        self._conductor = conductor
        self._keep = keep
        self._tick = tick
        self._listen = listen

    def run(self, repeat: int, index: int, rounds: int, first_round: int) -> list[LaunchReport]:
        """Measures in so many rounds; returns when no program is left. The reports are in the order
        of the parts."""
        self._repeat = repeat
        self._index = index
        self._children: list[_Child] = []
        self._ending = False
        with (
            tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as folder,
            selectors.DefaultSelector() as self._selector,
        ):
            self._board = Board(Path(folder) / "board", len(self._parts))
            conductor: Conductor | None = None
            try:
                for number in range(len(self._parts)):
                    self._start(number)
                conductor = Conductor(
                    self._conductor, self._board, rounds, first_round,
                    self._plan.seed + first_round, self._pins,
                )  # fmt: skip
                self._conduct(conductor)
            finally:
                if conductor is not None:
                    conductor.stop()
                self._end_children()
                self._board.close()
        reports = []
        for child in self._children:
            report = child.report or LaunchReport(status="failed", detail="its watcher ended")
            reports.append(report)
        return reports

    def _start(self, number: int) -> None:
        """Starts a launch and waits until it is ready: all others sleep meanwhile."""
        self._children.append(self._fork(number))
        child = self._children[-1]
        self._selector.register(child.pipe, selectors.EVENT_READ, number)
        while child.pipe >= 0 and not self._board.waits(number):
            self._hear(_START_POLL_S)
            self._tick(None)

    def _fork(self, number: int) -> _Child:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        parent = os.getpid()
        pid = os.fork()
        if pid:
            os.close(writer)
            return _Child(pid, reader)
        status = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() == parent:
                os.close(reader)
                self._watch(number, writer)
                status = 0
        except BaseException:  # an interrupt, which the parent knows, too
            pass
        finally:
            os._exit(status)

    def _watch(self, number: int, writer: int) -> None:
        """What a fork does."""
        take_precedence()

        def tell(kind: str, content: object) -> None:
            data = memoryview(json.dumps([kind, content]).encode() + b"\n")
            while data:
                data = data[os.write(writer, data) :]

        part = self._parts[number]
        launch = Launch(
            part.library,
            self._plan,
            part.job,
            self._pins,
            self._stall_s,
            lambda records: tell("keep", list(records)),
            lambda cell: tell("ended", cell) if cell is not None else None,
            Distance(None, ()),
            Seat(self._board, number, part.groups),
        )
        report = launch.run(part.cells, self._repeat, self._index)
        tell("report", {
            "ended": report.ended, "status": report.status, "detail": report.detail,
            "outcomes": [outcome.to_record() for outcome in report.outcomes],
        })  # fmt: skip

    def _conduct(self, conductor: Conductor) -> None:
        self._selector.register(conductor.output, selectors.EVENT_READ, None)
        self._heard = b""
        self._output: Any = conductor.output
        while any(child.pipe >= 0 for child in self._children):
            ended = conductor.has_ended
            self._hear(_POLL_S)
            self._tick(None)
            if ended:
                break  # Nobody gives turns any more: what still waits is ended.
        self._hear_rounds()

    def _hear(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                if not self._hear_rounds():
                    self._selector.unregister(key.fileobj)
            else:
                self._hear_child(key.data)

    def _hear_rounds(self) -> bool:
        try:
            data = self._output.read()
        except BlockingIOError:
            return True
        *lines, self._heard = (self._heard + (data or b"")).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, IndexError):
                record = json.loads(line)
                names = [part.library.name for part in self._parts]
                record["turns"] = [[names[one[0]], *one[1:]] for one in record["turns"]]
                record["stopped"] = sorted({names[number] for number in record["stopped"]})
                self._listen(record)
        return bool(data is None or data)

    def _hear_child(self, number: int) -> None:
        child = self._children[number]
        try:
            data = os.read(child.pipe, 1 << 20)
        except BlockingIOError:
            return
        *lines, child.rest = (child.rest + data).split(b"\n")
        for line in lines:
            self._take(child, *json.loads(line))
        if not data:
            self._selector.unregister(child.pipe)
            os.close(child.pipe)
            child.pipe = -1
            self._board.leave(number)
            os.waitpid(child.pid, 0)
            child.pid = 0

    def _take(self, child: _Child, kind: str, content: Any) -> None:  # noqa: ANN401 # from JSON
        if kind == "keep":
            self._keep(content)
        elif kind == "ended":
            if not self._ending:
                self._tick(content)
        else:
            outcomes = [Outcome.from_record(record) for record in content.pop("outcomes")]
            child.report = LaunchReport(outcomes=outcomes, **content)

    def _end_children(self) -> None:
        """Ends what is left after an interrupt: each fork ends its programs. Their last words, what
        was measured, are kept."""
        self._ending = True
        for number, child in enumerate(self._children):
            if child.pid:
                self._board.wake_all(number)
                with contextlib.suppress(OSError):
                    os.kill(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while any(child.pid for child in self._children) and time.monotonic() < deadline:
            for key, _ in self._selector.select(_POLL_S):
                if key.data is not None:
                    self._hear_child(key.data)
        for child in self._children:
            if child.pid:
                with contextlib.suppress(OSError):
                    os.kill(child.pid, signal.SIGKILL)
                    os.waitpid(child.pid, 0)

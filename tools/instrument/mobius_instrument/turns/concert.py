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
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mobius_instrument.errors import InstrumentError
from mobius_instrument.experiments import Job
from mobius_instrument.launch import Launch, LaunchReport, Seat
from mobius_instrument.libraries.base import Library
from mobius_instrument.machine.crowd import Meter
from mobius_instrument.machine.distance import Distance
from mobius_instrument.plan import Plan
from mobius_instrument.results import Outcome, Record
from mobius_instrument.turns.board import Board, Conductor, take_precedence

_POLL_S: Final = 0.1
# While programs start.
_START_POLL_S: Final = 0.005
# A start waits for other processes much: two at a time take two thirds of the time, more no less.
_START_AT_ONCE: Final = 2
_PR_SET_PDEATHSIG: Final = 1
_KEPT: Final = "measured cells are kept, the same command goes on"


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
    lines: list[bytes] = field(default_factory=list)  # to be taken
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
        self._first_round = first_round
        self._children: list[_Child] = []
        self._ending = False
        self._heard = b""
        meter = Meter()
        with (
            tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as folder,
            selectors.DefaultSelector() as self._selector,
        ):
            self._board = Board(Path(folder) / "board", len(self._parts))
            conductor: Conductor | None = None
            try:
                self._start()
                conductor = Conductor(
                    self._conductor, self._board, rounds, first_round,
                    self._plan.seed + first_round, self._pins,
                )  # fmt: skip
                self._conduct(conductor)
            finally:
                if conductor is not None:
                    conductor.stop()
                    # A cell that has ended refers to its rounds.
                    self._hear_rounds(conductor)
                    conductor.output.close()
                self._end_children()
                self._board.close()
                taken = meter.taken()
                self._keep([{
                    "type": "concert", "repeat": repeat, "index": index,
                    "programs": len(self._parts), "seconds": round(taken.seconds, 3),
                    "others_s": round(taken.others_s, 2), "stolen_s": round(taken.stolen_s, 2),
                }])  # fmt: skip
        return [child.report for child in self._children if child.report]

    def _start(self) -> None:
        """Starts the launches, some at a time, and waits until all are ready."""
        for number in range(len(self._parts)):
            while self._starting() >= _START_AT_ONCE:
                self._hear(_START_POLL_S)
                self._tick(None)
            self._children.append(self._fork(number))
            self._selector.register(self._children[-1].pipe, selectors.EVENT_READ, number)
        while self._starting():
            self._hear(_START_POLL_S)
            self._tick(None)

    def _starting(self) -> int:
        """How many launches are not ready yet."""
        return sum(
            child.pipe >= 0 and not self._board.waits(number)
            for number, child in enumerate(self._children)
        )

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
        except Exception:  # an error of the instrument, and no result of the library
            traceback.print_exc()
        except BaseException:  # an interrupt, which the parent knows, too
            pass
        finally:
            os._exit(status)

    def _watch(self, number: int, writer: int) -> None:
        """The work of a fork: runs the launch, and tells its parent what it hears."""
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
        self._selector.register(conductor.output, selectors.EVENT_READ, conductor)
        while any(child.pipe >= 0 for child in self._children):
            ended = conductor.has_ended
            self._hear(_POLL_S)
            self._tick(None)
            if ended and any(child.pipe >= 0 for child in self._children):
                raise InstrumentError(
                    f"the conductor of the turns ended (exit code {conductor.stop()}) before the"
                    f" programs did; {_KEPT}"
                )

    def _hear(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, Conductor):
                if not self._hear_rounds(key.data):
                    self._selector.unregister(key.fileobj)
            else:
                self._hear_child(key.data)

    def _hear_rounds(self, conductor: Conductor) -> bool:
        """Returns false at the end of its output."""
        try:
            data: bytes | None = conductor.output.read()
        except BlockingIOError:
            return True
        *lines, self._heard = (self._heard + (data or b"")).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, IndexError):
                record = json.loads(line)
                names = [part.library.name for part in self._parts]
                record["turns"] = [[names[one[0]], *one[1:]] for one in record["turns"]]
                record["stopped"] = sorted({names[number] for number in record["stopped"]})
                record["start"] = self._first_round
                self._listen(record)
        return bool(data is None or data)

    def _hear_child(self, number: int) -> None:
        child = self._children[number]
        try:
            data = os.read(child.pipe, 1 << 20)
        except BlockingIOError:
            return
        *lines, child.rest = (child.rest + data).split(b"\n")
        child.lines += lines
        while child.lines:  # one by one: the end of the time budget may be noticed at any of them
            self._take(child, child.lines.pop(0))
        if not data:
            self._selector.unregister(child.pipe)
            os.close(child.pipe)
            child.pipe = -1
            if child.report is None:  # its fork may have been killed while its programs are stopped
                self._board.wake_all(number)
            self._board.leave(number)
            os.waitpid(child.pid, 0)
            child.pid = 0
            if child.report is None and not self._ending:
                raise InstrumentError(f"a process of the instrument ended too early; {_KEPT}")

    def _take(self, child: _Child, line: bytes) -> None:
        try:
            kind, content = json.loads(line)
        except ValueError:  # an interrupt cut it off
            return
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
                if not isinstance(key.data, Conductor):
                    self._hear_child(key.data)
        for child in self._children:
            if child.pid:
                with contextlib.suppress(OSError):
                    os.kill(child.pid, signal.SIGKILL)
                    os.waitpid(child.pid, 0)

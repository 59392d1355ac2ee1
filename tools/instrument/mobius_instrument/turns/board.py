# SPDX-License-Identifier: BSD-3-Clause
"""The board of the programs that take turns (bench/turns/board.h), and the conductor.

The instrument makes the board, says which programs have ended, and reads whose turn it is. All else
the programs and the conductor write.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mobius_instrument.machine.processes import clean_environment

_MAGIC: Final = 0x6D627475
_HEAD_BYTES: Final = 64
_PROGRAM_BYTES: Final = 512
_HEAD: Final = struct.Struct("<IIIIQ")
_CURRENT_AT: Final = 12
_WORD: Final = struct.Struct("<I")
# Offsets in the part of a program.
_PROCESSES, _WAITING, _PLACE, _GONE, _TASK = 4, 8, 16, 20, 24
_PIDS_AT: Final = 64

MOST_PROGRAMS: Final = 64
PLACES_OF_GROUP: Final = 4096
# The number of the first round of a run: other numbers of repeats are smaller.
FIRST_ROUND: Final = 1_000_000
# A turn, which the open cells of a program share.
TURN_NS: Final = 16_000_000
# What is measured goes before other programs where the system allows it (to root): then only few
# samples are disturbed on a crowded machine.
NICENESS: Final = -15


def take_precedence() -> None:
    """Gives this process, and those that it starts, a high priority, if that is allowed."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)


class Board:
    """A file that the programs of one concert map."""

    def __init__(self, path: Path, programs: int) -> None:
        self.path = path
        self._programs = programs
        size = _HEAD_BYTES + _PROGRAM_BYTES * programs
        head = _HEAD.pack(_MAGIC, programs, 0, 0, TURN_NS)
        path.write_bytes(head.ljust(size, b"\0"))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)

    def _word(self, program: int, offset: int) -> int:
        (word,) = _WORD.unpack_from(self._map, _HEAD_BYTES + _PROGRAM_BYTES * program + offset)
        return int(word)

    def place(self, program: int) -> str:
        """What a program's option --turns gets."""
        return f"{self.path}:{program}"

    def waits(self, program: int) -> bool:
        """Whether all processes of a program wait for a turn."""
        processes = self._word(program, _PROCESSES)
        return processes > 0 and self._word(program, _WAITING) == processes

    def is_asleep(self, program: int) -> bool:
        """Whether a program has nothing to do: it waits while another one has its turn."""
        (current,) = _WORD.unpack_from(self._map, _CURRENT_AT)
        return self.waits(program) and current != program + 1

    def task(self, program: int) -> int:
        """The number of the cell, within its group, that a program measures."""
        return self._word(program, _TASK)

    def leave(self, program: int) -> None:
        """Notes that a program has ended."""
        at = _HEAD_BYTES + _PROGRAM_BYTES * program + _GONE
        _WORD.pack_into(self._map, at, 1)

    def wake_all(self, program: int) -> None:
        """Lets the processes of a program go on, if they are stopped."""
        at = _HEAD_BYTES + _PROGRAM_BYTES * program + _PIDS_AT
        count = min(self._word(program, _PROCESSES), 64)
        for pid in struct.unpack_from(f"<{count}i", self._map, at):
            if pid > 0:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Unmaps the file."""
        self._map.close()


class Conductor:
    """The process that gives turns."""

    def __init__(
        self, program: Path, board: Board, rounds: int, first: int, seed: int, pins: Sequence[int]
    ) -> None:
        self._process = subprocess.Popen(
            [
                str(program), str(board.path), str(rounds), str(first), str(seed),
                ",".join(map(str, pins[:2])) or "-",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=clean_environment({}),
            preexec_fn=take_precedence,  # noqa: PLW1509 # no other thread runs
        )  # fmt: skip
        assert self._process.stdout is not None
        self.output = self._process.stdout
        os.set_blocking(self.output.fileno(), False)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended: by itself only after all programs."""
        return self._process.poll() is not None

    def stop(self) -> int:
        """Ends it; no program is stopped then, unless it had to be killed. Returns its exit code.
        Its last rounds are still in `output`."""
        with contextlib.suppress(OSError):
            self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        return self._process.wait()

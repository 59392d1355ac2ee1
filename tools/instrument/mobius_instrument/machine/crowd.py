# SPDX-License-Identifier: BSD-3-Clause
"""Who else used the CPUs: what other programs had of them while something of ours ran, and what the
host of a virtual machine took.

The load average cannot tell: it looks back over a minute, on what has ended since and on us.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mobius_instrument.machine.host import allowed_cpus

_STAT: Final = Path("/proc/stat")
_TICKS_S: Final = os.sysconf("SC_CLK_TCK")
# Columns of a line "cpuN": user (including guests), nice, system, interrupts; then stolen.
_BUSY: Final = (1, 2, 3, 6, 7)
_STOLEN: Final = 8
# The shares of CPU time from which others are mentioned, and mentioned first.
_NOTABLE: Final = 0.03
DISTURBED: Final = 0.1
# A process with a smaller share of a CPU sleeps; a spinning one has more even beside six others.
_ASLEEP: Final = 0.05
# The possible error of the system's clocks, on all CPUs together.
_COARSE_S: Final = 0.05


@dataclass(frozen=True)
class Taken:
    """CPU seconds of others in an interval of `seconds`, by programs and (stolen) by guests of the
    same host, and our own. The system's clocks are coarse, so a short interval may have less than
    none."""

    seconds: float
    others_s: float
    stolen_s: float
    own_s: float = 0.0

    def patience(self, cpus: int, most: float) -> float:
        """The factor by which others slow down a program that needs the CPU, at most `most`. A
        program that hardly runs does not wait for a CPU and is not slowed down."""
        if self.own_s <= _ASLEEP * self.seconds:
            return 1.0
        left = 1 - (self.others_s + self.stolen_s) / (self.seconds * max(cpus, 1))
        return most if left * most <= 1 else 1 / min(left, 1.0)


def _read(cpus: frozenset[str]) -> tuple[float, float]:
    """Seconds that these CPUs were busy, and that were stolen from them, since the system started;
    zeros if the system does not tell."""
    busy = stolen = 0
    try:
        lines = _STAT.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0.0, 0.0
    for line in lines:
        words = line.split()
        if words and words[0] in cpus and len(words) > _STOLEN:
            busy += sum(int(words[column]) for column in _BUSY)
            stolen += int(words[_STOLEN])
    return busy / _TICKS_S, stolen / _TICKS_S


def own_seconds() -> float:
    """CPU time of this process and of all its descendants that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Meter:
    """Counts from its creation. `own` returns our own CPU seconds, which are not others'."""

    def __init__(self, own: Callable[[], float] = own_seconds) -> None:
        self._own = own
        self._cpus = frozenset(f"cpu{cpu}" for cpu in allowed_cpus())
        self._began = time.monotonic(), *_read(self._cpus), own()

    def taken(self) -> Taken:
        """The others' share of the allowed CPUs since then."""
        now = time.monotonic(), *_read(self._cpus), self._own()
        seconds, busy, stolen, own = (
            after - before for after, before in zip(now, self._began, strict=True)
        )
        return Taken(seconds, busy - own, stolen, own)


def disturbance(launches: Iterable[dict[str, Any]], cpus: int) -> tuple[float, list[str]]:
    """The share of CPU time that others had during launches, with sentences on what is notable.
    Launches are lines of a results file, of single launches and of concerts; those without these
    numbers, which a concert's launches are, are left out."""
    told = [
        Taken(one["seconds"], one["others_s"], one["stolen_s"])
        for one in launches
        if all(
            isinstance(one.get(name), int | float) for name in ("seconds", "others_s", "stolen_s")
        )
    ]
    had_s = sum(one.seconds for one in told) * cpus
    if had_s <= 0:
        return 0.0, []
    others = max(sum(one.others_s for one in told) / had_s, 0.0)
    stolen = max(sum(one.stolen_s for one in told) / had_s, 0.0)
    disturbed = sum(
        one.others_s + one.stolen_s > DISTURBED * one.seconds * cpus + _COARSE_S for one in told
    )
    often = f" ({disturbed} of {len(told)} launches lost more than {DISTURBED:.0%} to others)"
    sentences = []
    if others > _NOTABLE:
        sentences.append(f"Other programs had {others:.0%} of the CPU time during launches{often}.")
    if stolen > _NOTABLE:
        sentences.append(
            f"The host of this virtual machine gave {stolen:.0%} of the CPU time during launches to"
            f" others{often}."
        )
    return others + stolen, sentences

# SPDX-License-Identifier: BSD-3-Clause
"""How much of the processors other programs use during a recording."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Others:
    """How many processors other programs used, from here until `average()`."""

    def __init__(self) -> None:
        self._began = (time.monotonic(), *self._used())

    @staticmethod
    def _used() -> tuple[float, float]:
        line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
        # user (with guests), nice, system, interrupts, soft interrupts, stolen
        busy = sum(int(line[place]) for place in (1, 2, 3, 6, 7, 8))
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return busy / os.sysconf("SC_CLK_TCK"), own

    def average(self) -> float:
        """Of the processors of this machine."""
        wall, busy, own = (
            after - before
            for after, before in zip((time.monotonic(), *self._used()), self._began, strict=True)
        )
        return max(0.0, (busy - own) / max(wall, 1e-3))

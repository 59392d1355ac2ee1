# SPDX-License-Identifier: BSD-3-Clause
"""How far from each other the CPUs are that processes are pinned to: what two threads need to hand
a cache line over.

The host of a virtual machine moves its CPUs: in the next launch a line may take five times as long,
and all that goes from one process to the other with it. Times at different distances say nothing
about libraries.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mobius_instrument.processes import clean_environment

_CELL: Final = "pingpong:line:none:local"
# Up to so many times the shortest way that was seen counts as near.
_NEAR: Final = 1.5
_TIMEOUT_S: Final = 10.0


class Distance:
    """Measures it in some 10 ms. Without `program` (probe_limits) or two CPUs it is not known."""

    def __init__(self, program: Path | None, pins: Sequence[int]) -> None:
        self._program = program if len(pins) > 1 else None
        self._pins = ",".join(map(str, pins))

    def measure(self) -> float | None:
        """Nanoseconds of a line's way from one to the other; None: nobody knows."""
        if self._program is None:
            return None
        with tempfile.TemporaryDirectory(prefix="mob-", ignore_cleanup_errors=True) as folder:
            out = Path(folder) / "out.jsonl"
            arguments = ["--cells", _CELL, "--sizes", "8", "--min-samples", "30"]
            arguments += ["--max-seconds", "0.01", "--pin", self._pins, "--out", str(out)]
            try:
                subprocess.run(
                    [str(self._program), *arguments],
                    stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_TIMEOUT_S,
                    env=clean_environment({}),
                )  # fmt: skip
                records = [json.loads(line) for line in out.read_bytes().splitlines()]
                samples = [one["samples_ns"] for one in records if one["type"] == "samples"]
                return round(float(statistics.median(samples[0])), 1)
            except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
                return None


def ways_of(launch: dict[str, Any]) -> list[float]:
    """A line's way before and after a launch, if its record tells both."""
    told = launch.get("line_ns")
    if not isinstance(told, list) or len(told) != 2:
        return []
    ways = [float(way) for way in told if isinstance(way, int | float) and way > 0]
    return ways if len(ways) == 2 else []


def is_near(line_ns: float, nearest_ns: float) -> bool:
    """Whether CPUs are about as near to each other as they ever were."""
    return line_ns <= _NEAR * nearest_ns

# SPDX-License-Identifier: BSD-3-Clause
"""How far from each other the CPUs are that processes are pinned to: what two processes need to
hand a cache line over.

The host of a virtual machine moves its CPUs: in the next launch a line may take half or five times
as long, and all that goes from one process to the other with it. Times at different distances say
nothing about libraries, so those count that were measured at the usual one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mobius_instrument.machine.processes import clean_environment

_CELL: Final = "pingpong:line:none:local"
# The largest ratio of times that count as one distance.
_ONE_DISTANCE: Final = 1.5
# The share of launches that makes a distance the usual one, if no shorter one has as many.
_USUAL_SHARE: Final = 1 / 3
_TIMEOUT_S: Final = 10.0


class Distance:
    """Measures the distance in some 10 ms. Unknown without `program` (suite_limits) or without two
    CPUs."""

    def __init__(self, program: Path | None, pins: Sequence[int]) -> None:
        self._program = program if len(pins) > 1 else None
        self._pins = ",".join(map(str, pins))

    def measure(self) -> float | None:
        """Nanoseconds that a cache line takes from one to the other; None if unknown."""
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


class Ways(NamedTuple):
    """Nanoseconds that a cache line takes before and after a launch."""

    before: float
    after: float


class Band(NamedTuple):
    """A range of times that counts as one distance."""

    shortest_ns: float
    longest_ns: float

    def holds(self, way_ns: float) -> bool:
        """Whether a time is in this range."""
        return self.shortest_ns <= way_ns <= self.longest_ns

    def holds_both(self, ways: Ways) -> bool:
        """Whether a launch began and ended at this distance."""
        return self.holds(ways.before) and self.holds(ways.after)


def usual_band(launches: Sequence[Ways]) -> Band | None:
    """The shortest distance at which a third of the launches began and ended, else the most
    frequent one; None without launches."""
    bands = [Band(way, _ONE_DISTANCE * way) for way in sorted({min(ways) for ways in launches})]
    counts = {band: sum(map(band.holds_both, launches)) for band in bands}
    enough = [band for band in bands if counts[band] >= _USUAL_SHARE * len(launches)]
    # A range that begins a little lower has only some of the launches at that distance.
    alike = [band for band in bands if enough and enough[0].holds(band.shortest_ns)]
    return max(alike or bands, key=lambda band: counts[band], default=None)


def ways_of(launch: dict[str, Any]) -> Ways | None:
    """The times of a cache line before and after a launch, if its record has both."""
    told = launch.get("line_ns")
    if not isinstance(told, list) or len(told) != 2:
        return None
    ways = [float(way) for way in told if isinstance(way, int | float) and way > 0]
    return Ways(*ways) if len(ways) == 2 else None

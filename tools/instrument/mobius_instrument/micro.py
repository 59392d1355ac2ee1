# SPDX-License-Identifier: BSD-3-Clause
"""`bench micro`: Möbius against the bare machine, and what starting a job costs.

The times come from the native program `micro` (bench/micro), which compares variants with a limit
measured in the same run. Starting is timed here, from outside.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mobius_instrument.errors import InstrumentError
from mobius_instrument.locations import Locations

STARTUP = "startup"
_STARTS = 15
_LIMIT_S = 600.0

_HELP = """Usage: mobius bench micro [OPTIONS] [NAME]...

Sets Möbius against the bare machine: medians of interleaved rounds, and their ratio to a limit that
is measured in the same run. Keeps nothing.

  NAME         a benchmark (default: all); startup, which times whole jobs, is one, too
  --rounds N   rounds of every variant, 1 to 10000 (default 15)
  --json       print one JSON object per variant
  --list       list the benchmarks but startup; measure nothing
  -h, --help   this text
"""


def run_micro(arguments: Sequence[str], locations: Locations) -> int:
    """Runs the benchmarks that `arguments` name (all without names); returns the exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(_HELP)
        return 0
    command, program = locations.program("mobius"), locations.program("micro")
    if command is None or program is None:
        raise InstrumentError(
            f"mobius and micro are not both in {locations.searched}; build them with: mobius build"
        )
    launch = [str(command), "run", "-n", "2", str(program)]
    names = [argument for argument in arguments if not argument.startswith("-")]
    as_json = "--json" in arguments
    if names != [STARTUP]:
        rest = [argument for argument in arguments if argument != STARTUP]
        code = subprocess.run([*launch, *rest], check=False).returncode
        if code != 0 or "--list" in arguments:
            return code
    if not names or STARTUP in names:
        _measure_startup(command, program, as_json=as_json)
    return 0


def _measure_startup(command: Path, program: Path, *, as_json: bool) -> None:
    run = [str(command), "run", "-n"]
    variants = {
        "mobius run -n 1 true": [*run, "1", "true"],
        "mobius run -n 2 true": [*run, "2", "true"],
        "64 processes start and finalise": [*run, "64", str(program), "--nothing"],
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(_STARTS):
        for name, arguments in variants.items():
            begin = time.perf_counter_ns()
            code = subprocess.run(arguments, check=False, timeout=_LIMIT_S).returncode
            times[name].append(float(time.perf_counter_ns() - begin))
            if code != 0:
                raise InstrumentError(f"'{' '.join(arguments)}' failed with exit code {code}")
    if not as_json:
        print(f"{STARTUP} – a job from its command to its end")
    for name, values in times.items():
        middle = statistics.median(values)
        if as_json:
            record = {"type": "micro", "benchmark": STARTUP, "variant": name, "ns": values}
            print(json.dumps({**record, "median_ns": middle}))
        else:
            least, most = min(values) / 1e6, max(values) / 1e6
            print(f"  {name:<36} {middle / 1e6:>12.2f} ms  ({least:.2f} … {most:.2f})")

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

# As in bench/micro: a list must not need the program. A test compares.
_BENCHMARKS = {
    "put8": "one 8-byte put of a loop over 16 KiB of a local peer",
    "get8": "one 8-byte get of a loop over 16 KiB of a local peer",
    "put8_flush": "an 8-byte put with remote completion, lines owned by the origin",
    "copy_4k": "transfer of 4096 bytes",
    "copy_64k": "transfer of 65536 bytes",
    "copy_512k": "transfer of 524288 bytes",
    "copy_4m": "transfer of 4194304 bytes",
    "copy_16m": "transfer of 16777216 bytes",
    "strided_8_16": "1024 × 8 bytes, stride 16",
    "strided_64_128": "512 × 64 bytes, stride 128",
    "strided_512_1024": "128 × 512 bytes, stride 1024",
    "strided_512_4096": "128 × 512 bytes, stride 4096",
    "strided_4096_8192": "64 × 4096 bytes, stride 8192",
    "fetch_add8": "fetch-and-add of 8 bytes, all on one line",
    "accumulate_rows": "128 rows of 512 bytes of doubles added, stride 1024, at a local peer",
    "accumulate_integers": "64 KiB of uint32 added to those of a local peer",
    "exposed_put8": "8 bytes to memory from malloc()",
    "exposed_strided": "128 × 512 bytes, stride 1024, of memory from malloc()",
    "exposed_fetch_add8": "fetch-and-add on memory from malloc()",
    "moved_put8": "8 bytes to memory from malloc() whose pages were moved",
    "moved_strided": "128 × 512 bytes, stride 1024, of memory whose pages were moved",
    "moved_fetch_add8": "fetch-and-add on memory whose pages were moved",
    "neighbours": "sizes of mob_put, one after the other",
    "alignments": "2048 bytes at all alignments in a cache line, of target and source",
    "distances": "16384 bytes, by how far the target lies behind the source in a page",
    "strides": "boxes of 128 × 256 bytes, one stride after the other",
    "one_way": "an 8-byte put until a polling peer on another processor sees it",
    "message_8": "a message of 8 bytes until the handler of a polling peer has run",
    "message_wake": "a message of 8 bytes and its reply by a progress thread that slept",
    "message_4k": "messages of 4096 bytes to a peer that polls",
    "message_16k": "messages of 16384 bytes to a peer that polls",
    "message_64k": "messages of 65536 bytes to a peer that polls",
    "message_1m": "messages of 1048576 bytes to a peer that polls",
    "barrier": "a barrier of all processes",
    "collective8": "collective calls of 8 bytes",
    "collective1m": "collective calls of 1 MiB",
    "sync": "a 4-byte put until its target knows of it: half a round trip",
    "lock": "acquire and release a lock that nobody else wants",
    "lock_contended": "one turn of a lock that two processes take again and again",
    STARTUP: "a job from its command to its end",
}

_HELP = """Usage: mobius bench micro [OPTIONS] [NAME]...

Sets Möbius against the bare machine: medians of interleaved rounds, and their ratio to a limit that
is measured in the same run. Keeps nothing.

  NAME         a benchmark (default: all); startup, which times whole jobs, is one, too
  --rounds N   rounds of every variant, 1 to 10000 (default 15)
  --json       print one JSON object per variant
  --list       list the benchmarks; measure nothing
  -h, --help   this text
"""


def run_micro(arguments: Sequence[str], locations: Locations) -> int:
    """Runs the benchmarks that `arguments` name (all without names); returns the exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(_HELP)
        return 0
    if "--list" in arguments:
        for name, what in _BENCHMARKS.items():
            print(f"{name:<19} {what}")
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
        if code != 0:
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
        print(f"{STARTUP} – {_BENCHMARKS[STARTUP]}")
    for name, values in times.items():
        middle = statistics.median(values)
        if as_json:
            record = {"type": "micro", "benchmark": STARTUP, "variant": name, "ns": values}
            print(json.dumps({**record, "median_ns": middle}))
        else:
            least, most = min(values) / 1e6, max(values) / 1e6
            print(f"  {name:<36} {middle / 1e6:>12.2f} ms  ({least:.2f} … {most:.2f})")

# SPDX-License-Identifier: BSD-3-Clause
"""What a run measures: decided before anything is launched, hashed so that a run can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mobius_instrument.cells import (
    DEFAULT_INTEGERS,
    FULL_INTEGERS,
    INTEGER_BYTES,
    Cell,
)
from mobius_instrument.libraries.base import Library

# For the estimate only: what a repetition costs in a slow library on a slow host.
_TYPICAL_LATENCY_NS: Final = 3_000.0
_TYPICAL_MB_S: Final = 8_000.0
# Starting both processes, warming up and verifying.
_LAUNCH_S: Final = 1.5
_SIZE_OVERHEAD: Final = 0.9


@dataclass(frozen=True)
class Effort:
    """How long and how often: paper 1 takes 100 repetitions, which the launches reach together."""

    repeats: int
    min_samples: int
    max_seconds: float


DEFAULT_EFFORT: Final = Effort(repeats=5, min_samples=100, max_seconds=0.02)
FULL_EFFORT: Final = Effort(repeats=7, min_samples=100, max_seconds=0.1)


def default_sizes(full: bool) -> list[int]:
    """Sizes in bytes."""
    return [count * INTEGER_BYTES for count in (FULL_INTEGERS if full else DEFAULT_INTEGERS)]


@dataclass(frozen=True)
class Plan:
    """Sizes in bytes; `libraries` are those that are ready, in the order of the report."""

    experiments: tuple[str, ...]
    sizes: tuple[int, ...]
    effort: Effort
    seed: int
    libraries: tuple[Library, ...]
    host: dict[str, Any]

    def cells(self, library: Library) -> tuple[Cell, ...]:
        """What is measured of a library."""
        return tuple(cell for cell in library.cells if cell.experiment in self.experiments)

    @property
    def hash(self) -> str:
        """Same hash, same numbers to expect: the plan, the measured code and the host count."""
        identity = {
            "plan": self.to_record(),
            "code": {library.name: library.fingerprint for library in self.libraries},
            "host": [self.host.get(name) for name in ("hostname", "cpu", "cores", "kernel")],
        }
        text = json.dumps(identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_record(self) -> dict[str, Any]:
        """The `plan` of a run record."""
        return {
            "experiments": list(self.experiments),
            "sizes": list(self.sizes),
            "repeats": self.effort.repeats,
            "min_samples": self.effort.min_samples,
            "max_seconds": self.effort.max_seconds,
            "seed": self.seed,
            "libraries": [library.name for library in self.libraries],
            "cells": {
                library.name: [str(cell) for cell in self.cells(library)]
                for library in self.libraries
            },
        }

    def order(self, repeat: int) -> list[Library]:
        """Libraries of a repeat. Rotated, so that each comes first, second, … equally often and
        none always runs on the machine that another has just warmed."""
        shift = (self.seed + repeat) % max(len(self.libraries), 1)
        return [*self.libraries[shift:], *self.libraries[:shift]]

    def estimate_s(self, cells: int, launches: int) -> float:
        """Time for so many cells, each with all sizes."""
        per_cell = sum(
            max(self.effort.max_seconds, self.effort.min_samples * _repetition_ns(size) / 1e9)
            for size in self.sizes
        )
        return launches * _LAUNCH_S + cells * per_cell * _SIZE_OVERHEAD

    def probe_arguments(self, cells: Sequence[str], out: str, pins: Sequence[int]) -> list[str]:
        """The probe's command line, without the program."""
        arguments = ["--cells", ",".join(cells), "--sizes", ",".join(map(str, self.sizes))]
        arguments += ["--out", out, "--min-samples", str(self.effort.min_samples)]
        arguments += ["--max-seconds", f"{self.effort.max_seconds:g}", "--seed", str(self.seed)]
        if pins:
            arguments += ["--pin", ",".join(map(str, pins))]
        return arguments


def _repetition_ns(size_bytes: int) -> float:
    return 2 * (_TYPICAL_LATENCY_NS + size_bytes * 1e9 / (_TYPICAL_MB_S * 1e6))

# SPDX-License-Identifier: BSD-3-Clause
"""What a run measures: decided before the first launch, and hashed so that a run can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mobius_instrument.cells import (
    DEFAULT_INTEGERS,
    FULL_INTEGERS,
    INTEGER_BYTES,
    PAPER1_EXPERIMENTS,
    Cell,
)
from mobius_instrument.experiments import Effort, Job, Setting, jobs_of
from mobius_instrument.libraries.base import PROCESSES, Library

# For the estimate only: the time of a repetition in a slow library on a slow host.
_TYPICAL_LATENCY_NS: Final = 3_000.0
_TYPICAL_MB_S: Final = 8_000.0
# The time to start both processes, warm up and verify.
_LAUNCH_S: Final = 0.8
_SIZE_OVERHEAD: Final = 0.9


DEFAULT_EFFORT: Final = Effort(repeats=4, min_samples=100, max_seconds=0.02)
FULL_EFFORT: Final = Effort(repeats=5, min_samples=100, max_seconds=0.05)
# There are many experiments besides the two of paper 1; only those two keep its numbers of
# repetitions.
_SUITE_REPEATS: Final = 3
_SUITE_SAMPLES: Final = 40
_SUITE_SECONDS: Final = 0.008
_SUITE_FULL_SECONDS: Final = 0.02
# How often libraries are started to take turns. A start decides where memory lies; some minutes
# later the processors of a virtual machine are at another distance.
_CONCERTS: Final = 3
# The time to start, open and close a cell, and verify a size.
_CELL_S: Final = 0.012


# The most memory that a process needs for a size: areas for transfers and packing, and a result.
_COPIES: Final = 5


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
    full: bool = False
    # --sizes was given: the sizes of the experiments whose sizes can be chosen.
    sizes_given: bool = False
    repeats_given: bool = False

    def jobs(self, library: Library) -> list[Job]:
        """The jobs of a library, launch by launch."""
        cpus = self.host.get("cores")
        setting = Setting(
            library,
            self.full,
            cpus if isinstance(cpus, int) else PROCESSES,
            self.sizes if self.sizes_given else (),
        )
        names = [one for one in self.experiments if not library.only or one in library.only]
        jobs = jobs_of(setting, names, self.sizes)
        fitting = [replace(job, sizes=tuple(filter(self._fits(job), job.sizes))) for job in jobs]
        return [job for job in fitting if job.sizes]

    @property
    def too_large(self) -> list[int]:
        """Sizes of --sizes that do not fit into this host's memory with two processes."""
        fits = self._fits(Job("", "", (), ()))
        return [size for size in self.sizes if not fits(size)]

    def _fits(self, job: Job) -> Callable[[int], bool]:
        memory = self.host.get("memory_bytes")
        if not isinstance(memory, int):
            return lambda _size: True
        processes = max(job.processes, job.together)
        return lambda size: size * processes * _COPIES <= memory

    def cells(self, library: Library) -> tuple[Cell, ...]:
        """All cells of a library."""
        return tuple(cell for job in self.jobs(library) for cell in job.cells)

    def effort_of(self, job: Job) -> Effort:
        """How long and how often to measure a job."""
        effort = self.effort
        if job.experiment in PAPER1_EXPERIMENTS:
            return replace(effort, repeats=min(job.most_repeats, effort.repeats))
        repeats = min(job.most_repeats, effort.repeats)
        if not self.repeats_given:
            repeats = min(repeats, _SUITE_REPEATS)
        seconds = _SUITE_FULL_SECONDS if self.full else _SUITE_SECONDS
        samples = _SUITE_SAMPLES
        if job.experiment == "matrix":
            samples, seconds = 10, 0.0
        return Effort(repeats, min(samples, effort.min_samples), min(seconds, effort.max_seconds))

    def concerts_of(self, experiment: str) -> int:
        """How often the libraries are started to take turns."""
        if self.repeats_given:
            return self.effort.repeats
        return 1 if experiment == "trust" and not self.full else _CONCERTS

    @property
    def hash(self) -> str:
        """Equal for plans whose numbers can be compared: hashes the plan, the measured code and the
        hosts."""
        identity = {
            "plan": self.to_record(),
            "code": {library.name: library.fingerprint for library in self.libraries},
            "jobs": [
                [library.name, job.experiment, job.processes, *job.sizes]
                for library in self.libraries
                for job in self.jobs(library)
            ],
            "host": [self.host.get(name) for name in ("hostname", "cpu", "cores", "kernel")],
        }
        text = json.dumps(identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_record(self) -> dict[str, Any]:
        """The `plan` of a run record."""
        hosts = next((library.hosts for library in self.libraries if library.hosts), None)
        return {
            **({"hosts": list(hosts.names), "rate": hosts.rate} if hosts else {}),
            "experiments": list(self.experiments),
            "full": self.full,
            "sizes": list(self.sizes),
            "sizes_given": self.sizes_given,
            "repeats": self.effort.repeats,
            "repeats_given": self.repeats_given,
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
        """The libraries of a repeat, rotated: each comes first, second, … equally often, and none
        always runs on the machine that another has just warmed up."""
        shift = (self.seed + repeat) % max(len(self.libraries), 1)
        return [*self.libraries[shift:], *self.libraries[:shift]]

    def estimate_s(self, job: Job, cells: int, launches: int = 1) -> float:
        """The time of so many cells of a job, each with all its sizes."""
        effort = self.effort_of(job)
        per_cell = sum(
            job.seconds or max(effort.max_seconds, effort.min_samples * _repetition_ns(size) / 1e9)
            for size in job.sizes
        )
        if job.experiment not in PAPER1_EXPERIMENTS:
            # Some cells are measured in three parts; processes beyond the CPUs share them.
            parts = 3 if job.experiment == "overlap" else 1
            per_cell = per_cell * parts + _CELL_S * (1 + len(job.sizes))
        return launches * _LAUNCH_S + cells * per_cell * _SIZE_OVERHEAD

    def repetition_s(self, job: Job, size_bytes: int) -> float:
        """The time of one repetition, roughly."""
        if job.seconds:
            return job.seconds / 20
        row = {"bandwidth": 8, "message-rate": 16, "multi-op": 2, "datatypes": 6, "apex": 64}
        return _repetition_ns(size_bytes) * row.get(job.experiment, 1) / 1e9

    def arguments(self, job: Job, cells: Sequence[str], out: str, pins: Sequence[int]) -> list[str]:
        """The arguments of a program."""
        effort = self.effort_of(job)
        arguments = ["--cells", ",".join(cells), "--sizes", ",".join(map(str, job.sizes))]
        arguments += ["--out", out, "--min-samples", str(effort.min_samples)]
        arguments += ["--max-seconds", f"{effort.max_seconds:g}", "--seed", str(self.seed)]
        if pins:
            arguments += ["--pin", ",".join(map(str, pins))]
        return arguments


def _repetition_ns(size_bytes: int) -> float:
    return 2 * (_TYPICAL_LATENCY_NS + size_bytes * 1e9 / (_TYPICAL_MB_S * 1e6))

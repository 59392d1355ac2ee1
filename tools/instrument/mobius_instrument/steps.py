# SPDX-License-Identifier: BSD-3-Clause
"""The order of a run: steps, each one launch, or several that take turns.

Everything is decided here before anything is measured, with the time that it will take.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from mobius_instrument.cells import EXPERIMENTS, PAPER1_EXPERIMENTS, Cell
from mobius_instrument.experiments import Job
from mobius_instrument.libraries.base import Library
from mobius_instrument.plan import Plan
from mobius_instrument.turns.board import MOST_PROGRAMS, TURN_NS
from mobius_instrument.turns.concert import Part

# Their cells are told apart by more than times, take long each, or are of processes that come
# later.
_ALONE: Final = ("progress", "matrix", "spawn-cost", "dynamic-comm", "schedule")
# The rounds of a quick run, in all of its starts together, and of each start in a full one.
ROUNDS: Final = 9
FULL_ROUNDS: Final = 24
# To tell a program from itself.
TRUST_ROUNDS: Final = 20
# If processes share a processor, a sample takes milliseconds, and shows how a library waits.
CROWDED_ROUNDS: Final = 6

# For the estimate. Seconds: to start a program, to prepare and verify a cell and size; of a slice,
# besides the samples.
_START_S: Final = 0.4
_PREPARE_S: Final = 0.004
_SLICE_S: Final = 0.0003
# Slices of a turn (bench/turns/turns.c).
_SLICE_LIMITS_S: Final = (0.0003, 0.002)
# Times of a crowded cell and size per round, and to prepare it.
_CROWDED_S: Final = 0.02
_CROWDED_PREPARE_S: Final = 0.12
# The part of the memory that the windows of one group may take, and areas in a cell's window.
_MEMORY_PART: Final = 4
_AREAS: Final = 5
_APEX_BYTES: Final = 16 << 20
_ROW_BYTES: Final = 4 << 20


@dataclass(frozen=True)
class Step:
    """Launches that are made at once, and the estimated time. `rounds` is 0 for one that measures
    alone."""

    repeat: int
    parts: tuple[Part, ...]
    rounds: int
    seconds: float

    @property
    def cells(self) -> int:
        """The number of all cells."""
        return sum(len(part.groups) for part in self.parts)

    @property
    def experiment(self) -> str:
        """What it measures."""
        return self.parts[0].job.experiment


def takes_turns(library: Library, job: Job) -> bool:
    """Whether the cells of a job may be measured in turns."""
    return (
        library.hosts is None
        and job.program == "suite"
        and not job.dynamic
        and job.experiment not in _ALONE
    )


def group_of(cell: Cell, level: int) -> str:
    """The name of a cell's group: all cells of a job; those of an operation, or alike cells. Groups
    of higher levels are smaller and need less memory."""
    if cell.experiment == "apex":
        return cell.option("k")
    if level == 0:
        return ""
    name = cell.operation if level == 1 else f"{cell.operation}:{cell.sync}"
    return name if level <= 2 else str(cell.without("run"))


_MOST_LEVEL: Final = 3


def _cell_bytes(job: Job) -> int:
    """The memory that an open cell takes in one process."""
    largest = max(job.sizes)
    if job.experiment in PAPER1_EXPERIMENTS:
        return largest + (64 << 10)
    if job.experiment == "apex":
        return _AREAS * _APEX_BYTES
    row = _ROW_BYTES if job.experiment in ("bandwidth", "message-rate") else 0
    return _AREAS * max(largest, row) + (64 << 10)


def _groups(launches: list[tuple[Library, Job, list[str]]], memory: int) -> list[dict[str, int]]:
    """Groups as large as memory allows; the number of each cell's group, by launch."""
    for level in range(_MOST_LEVEL + 1):
        named = [
            {cell: group_of(Cell.parse(cell), level) for cell in cells} for _, _, cells in launches
        ]
        order = list(dict.fromkeys(name for names in named for name in names.values()))
        needed = [
            sum(
                list(names.values()).count(group) * job.processes * _cell_bytes(job)
                for (_, job, _), names in zip(launches, named, strict=True)
            )
            for group in order
        ]
        if max(needed) <= memory or level == _MOST_LEVEL:
            break
    return [{cell: order.index(name) for cell, name in names.items()} for names in named]


def _memory(plan: Plan) -> int:
    """Bytes that windows may take: of the memory, and of what is free for shared memory."""
    known = plan.host.get("memory_bytes")
    memory = known if isinstance(known, int) else 4 << 30
    try:
        shared = os.statvfs("/dev/shm")
        free = shared.f_bavail * shared.f_frsize
    except OSError:
        free = memory
    return min(memory // _MEMORY_PART, free // 2)


def plan_steps(
    plan: Plan, remaining: Callable[[int, Library, Job], list[str]], in_turns: bool
) -> list[Step]:
    """All steps: repeats, in each of them experiments, so that changes of the machine affect all
    libraries alike. What can be measured in turns is, in one step for all libraries."""
    jobs = {library.name: plan.jobs(library) for library in plan.libraries}
    names = dict.fromkeys(job.experiment for found in jobs.values() for job in found)
    steps: list[Step] = []
    for repeat in range(plan.effort.repeats):
        for name in [name for name in EXPERIMENTS if name in names]:
            due = [
                (library, job)
                for library in plan.order(repeat)
                for job in jobs[library.name]
                if job.experiment == name
            ]
            steps += _steps_of(plan, repeat, due, remaining, in_turns)
    return steps


def _steps_of(
    plan: Plan,
    repeat: int,
    due: list[tuple[Library, Job]],
    remaining: Callable[[int, Library, Job], list[str]],
    in_turns: bool,
) -> list[Step]:
    steps: list[Step] = []
    concerts: dict[object, list[tuple[Library, Job, list[str]]]] = {}
    for library, job in due:
        key = (job.program, job.processes, job.sizes)
        together = in_turns and takes_turns(library, job)
        if together:
            companions = [
                one for one in due
                if takes_turns(*one) and (one[1].program, one[1].processes, one[1].sizes) == key
            ]  # fmt: skip
            together = len(companions) > 1
        repeats = plan.effort_of(job).repeats
        most = plan.concerts_of(job.experiment) if together else repeats
        cells = remaining(repeat, library, job) if repeat < most else []
        if not cells:
            continue
        if together:
            concerts.setdefault(key, []).append((library, job, cells))
        else:
            steps.append(alone(plan, repeat, library, job, cells))
    return steps + [
        concert(plan, repeat, launches[first : first + MOST_PROGRAMS])
        for launches in concerts.values()
        for first in range(0, len(launches), MOST_PROGRAMS)
    ]


def alone(plan: Plan, repeat: int, library: Library, job: Job, cells: Iterable[str]) -> Step:
    """One launch by itself."""
    groups = dict.fromkeys(cells, 0)
    return Step(repeat, (Part(library, job, groups),), 0, plan.estimate_s(job, len(groups)))


def concert(plan: Plan, repeat: int, launches: list[tuple[Library, Job, list[str]]]) -> Step:
    """Launches that take turns."""
    groups = _groups(launches, _memory(plan))
    parts = tuple(
        Part(library, job, numbers)
        for (library, job, _), numbers in zip(launches, groups, strict=True)
    )
    cpus = plan.host.get("cores")
    job = launches[0][1]
    crowded = isinstance(cpus, int) and job.processes > cpus
    rounds = CROWDED_ROUNDS if crowded else FULL_ROUNDS if plan.full else ROUNDS
    if crowded or not plan.full:
        rounds = math.ceil(rounds / plan.concerts_of(job.experiment))
    if job.experiment == "trust":
        rounds = max(rounds, TRUST_ROUNDS)
    return Step(repeat, parts, rounds, _concert_s(plan, parts, rounds, crowded))


def _concert_s(plan: Plan, parts: tuple[Part, ...], rounds: int, crowded: bool) -> float:
    total = 0.0
    for part in parts:
        total += _START_S
        times = 3 if part.job.experiment == "overlap" else 1
        for group in set(part.groups.values()):
            cells = list(part.groups.values()).count(group)
            low, high = _SLICE_LIMITS_S
            slice_s = min(max(TURN_NS / 1e9 / cells, low), high)
            for size in part.job.sizes:
                if crowded:
                    each = _CROWDED_PREPARE_S + rounds * _CROWDED_S
                else:
                    once = plan.repetition_s(part.job, size)
                    each = _PREPARE_S + 20 * once
                    each += rounds * (_SLICE_S + max(slice_s, 2 * once))
                total += cells * each * times
    return total

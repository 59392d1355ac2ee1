# SPDX-License-Identifier: BSD-3-Clause
"""Processes that join a running job, and jobs that connect (bench/scale/dynamic.c)."""

from __future__ import annotations

import os
import re
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from mobius_setup.docs.markdown import ratio_text, table, time_text
from mobius_setup.docs.recording import DocsError, Figure, Recording
from mobius_setup.docs.running import LAUNCHES, launched

_PROGRAM: Final = "dynamic_bench"
_SPAWNED: Final = (1, 4, 64)
_CONNECTED: Final = (1, 2)
# Kinds of processes that come later: how keys of figures begin, and the heads of the columns.
_KINDS: Final = {
    "spawned": ("", "with a spawned process (ratio, by turns)"),
    "connected": ("connected: ", "with one that connected"),
    "joined": ("joined: ", "with one that joined"),
}


def figures(root: Path) -> list[Figure]:
    """How long they take to be there, and operations with them."""
    found = [_spawn(root, count) for count in _SPAWNED]
    found += [_connect(root, count) for count in _CONNECTED]
    line = re.compile(r"^(.+): ([\d.]+) ([\d.]+) ([\d.]+)$", re.M)
    for kind, (prefix, _) in _KINDS.items():
        for name, world, later, ratio in line.findall(launched(root, _PROGRAM, "compare", kind)):
            found.append(
                {
                    "key": prefix + name, "world_ns": float(world), "ns": float(later),
                    "ratio": float(ratio),
                }
            )  # fmt: skip
    return found


def _medians(pattern: str, said: list[str]) -> list[float]:
    """Of the numbers that a pattern finds in what each launch said."""
    launches = []
    for text in said:
        if (found := re.search(pattern, text)) is None:
            raise DocsError(f"{_PROGRAM} said '{text}'")
        launches.append([float(value) for value in found.groups()])
    return [statistics.median(values) for values in zip(*launches, strict=True)]


def _spawn(root: Path, count: int) -> Figure:
    said = [
        launched(root, _PROGRAM, "spawn", str(count), options=("-n", "1")) for _ in range(LAUNCHES)
    ]
    spawn, put = _medians(r"spawn \d+: ([\d.]+) ms, put ([\d.]+) ms", said)
    return {"key": f"spawn {count}", "spawn_ms": spawn, "put_ms": put, "launches": LAUNCHES}


def _connect(root: Path, count: int) -> Figure:
    """Two jobs of so many processes each."""

    def job(role: str) -> str:
        name = f"record-{os.getpid()}"
        return launched(root, _PROGRAM, role, name, options=("-n", str(count)))

    said = []
    for _ in range(LAUNCHES):
        with ThreadPoolExecutor(2) as jobs:
            said.append(next(iter(list(jobs.map(job, ("accept", "connect"))))))
    connect, put = _medians(r"connect \d+: ([\d.]+) ms, put ([\d.]+) ms", said)
    return {"key": f"connect {count}", "connect_ms": connect, "put_ms": put, "launches": LAUNCHES}


def spawning(of: Recording) -> str:
    """What mob_spawn() takes."""
    rows = [
        [str(count), *(time_text(one[end] * 1e6) for end in ("spawn_ms", "put_ms"))]
        for count in _SPAWNED
        for one in (of.need(f"spawn {count}"),)
    ]
    head = ("processes", "`mob_spawn()` returns", "a put into each has completed")
    return table(head, rows, of.source())


def connecting(of: Recording) -> str:
    """What mob_accept() takes while another job connects."""
    rows = [
        [f"{count} + {count}", *(time_text(one[end] * 1e6) for end in ("connect_ms", "put_ms"))]
        for count in _CONNECTED
        if (one := of.find(f"connect {count}")) is not None
    ]
    if not rows:
        return "Not recorded yet.\n"
    head = ("processes", "`mob_accept()` returns", "a put into each of the other job has completed")
    return table(head, rows, of.source())


def with_later(of: Recording) -> str:
    """Operations with processes that came later, beside those in the first job."""
    names = [key for key, one in of.figures.items() if "world_ns" in one and ": " not in key]
    kinds = [prefix for prefix, _ in _KINDS.values() if of.find(prefix + names[0])]
    rows = []
    for name in names:
        ones = [of.need(prefix + name) for prefix in kinds]
        world = statistics.median(one["world_ns"] for one in ones)
        cells = [f"{time_text(one['ns'])} ({ratio_text(one['ratio'])})" for one in ones]
        rows.append([name, time_text(world), *cells])
    heads = [head for prefix, head in _KINDS.values() if prefix in kinds]
    return table(("operation", "in the first job", *heads), rows, of.source())

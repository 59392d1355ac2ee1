# SPDX-License-Identifier: BSD-3-Clause
"""Möbius itself and the limits, whose programs this project's build makes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from mobius_instrument.libraries.base import (
    Candidate,
    Context,
    Library,
    application_command,
    cells,
    hash_files,
)
from mobius_instrument.libraries.own import absent, shared_libraries, started_by_mobius
from mobius_instrument.locations import Locations
from mobius_instrument.machine.processes import clean_environment
from mobius_instrument.results import LibraryRecord

MOBIUS_CELLS: Final = (
    *cells("pingpong", ("put", "get"), ("flush",), ("allocate", "create")),
    *cells("pingpong", ("message",), ("none",), ("local",)),
    *cells("completion", ("put", "get"), ("flush",), ("allocate", "create")),
)
LIMIT_CELLS: Final = (
    *cells("pingpong", ("line",), ("none",), ("local",)),
    *cells("completion", ("copy",), ("none",), ("local",)),
)


def candidates(locations: Locations) -> list[Candidate]:
    """Möbius and the limits, built or not."""
    return [
        Candidate(
            name="mobius",
            description="this Möbius",
            present=bool(locations.program("mobius") and locations.program("suite_mobius")),
            prepare=_prepare_mobius,
        ),
        Candidate(
            name="limits",
            description="the limits: two processes exchanging a cache line, memcpy",
            present=bool(locations.program("suite_limits")),
            prepare=_prepare_limits,
        ),
    ]


def _prepare_mobius(context: Context) -> Library:
    locations = context.locations
    mobius, suite = locations.program("mobius"), locations.program("suite_mobius")
    if mobius is None or suite is None:
        program = "mobius" if mobius is None else "suite_mobius"
        return absent("mobius", "Möbius", "mobius", program, locations)
    version = _version(mobius)
    label = f"Möbius {version}".strip()
    apps = {name: locations.program(name) for name in ("lu", "md")}
    parts = (suite, *shared_libraries(suite, "libmobius.so*"), *filter(None, apps.values()))
    library = Library(
        record=LibraryRecord("mobius", label, version, "mobius", "ready"),
        cells=MOBIUS_CELLS,
        fingerprint=hash_files(mobius, *parts),
        suite_kind="mobius",
    )
    return started_by_mobius(library, mobius, suite, apps, two_jobs=True)


def _version(program: Path) -> str:
    """The output of `mobius --version` without the name; empty if it is not usable."""
    try:
        done = subprocess.run(
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env=clean_environment({}),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stdout.split() if done.returncode == 0 else []
    return next((word.lstrip("v") for word in words if word.lstrip("v")[:1].isdigit()), "")


def _prepare_limits(context: Context) -> Library:
    program = context.locations.program("suite_limits")
    if program is None:
        return absent("limits", "limit", "limit", "suite_limits", context.locations)
    threads = context.locations.program("lu-threads")
    return Library(
        record=LibraryRecord(
            library="limits",
            label="limit (cache lines, memcpy)",
            version="",
            kind="limit",
            status="ready",
        ),
        cells=LIMIT_CELLS,
        fingerprint=hash_files(program, *([threads] if threads else [])),
        suite=lambda _how: (str(program),),
        suite_kind="limits",
        applications={"lu": lambda _how: application_command((str(threads),))} if threads else {},
    )

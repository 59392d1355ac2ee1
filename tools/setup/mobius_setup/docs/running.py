# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs of the release build for a recording."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mobius_setup.docs.recording import DocsError

LAUNCHES: Final = 3
PROGRAMS: Final = Path("build/release/bin")


def output(root: Path, command: Iterable[str | Path]) -> str:
    """What a command prints, which must succeed."""
    arguments = [str(part) for part in command]
    done = subprocess.run(
        arguments, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise DocsError(f"'{' '.join(arguments)}' failed with exit code {done.returncode}")
    return done.stdout


def launched(
    root: Path, program: str | Path, *arguments: str, options: Iterable[str] = ("-n", "2")
) -> str:
    """What a program prints under `mobius run`."""
    return output(root, [PROGRAMS / "mobius", "run", *options, PROGRAMS / program, *arguments])

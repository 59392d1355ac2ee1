# SPDX-License-Identifier: BSD-3-Clause
"""Shared memory that an MPI leaves behind if its processes are killed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_FOLDER: Final = Path("/dev/shm")
# The names of the MPIs' segments; we do not touch others.
_NAMES: Final = ("mpich_shm_*", "sm_segment.*", "vader_segment.*", "Intel_MPI_*", "impi_shm_*")


def segments() -> set[Path]:
    """The shared memory segments of MPI libraries that belong to this user."""
    found = set()
    for path in (path for name in _NAMES for path in _FOLDER.glob(name)):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.geteuid():
                found.add(path)
    return found


def remove_new(before: set[Path]) -> None:
    """Removes segments that are not in `before` and that no process uses any more."""
    new = segments() - before
    if not new:
        return
    used = _mapped()
    for path in new:
        if str(path) not in used:
            with contextlib.suppress(OSError):
                path.unlink()


def _mapped() -> str:
    texts = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            texts.append(maps.read_text(encoding="utf-8", errors="replace"))
    return "".join(texts)

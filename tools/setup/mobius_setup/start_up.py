# SPDX-License-Identifier: BSD-3-Clause
"""Spares tests between hosts what libfabric does at the start of each process.

As Debian builds it, it reads the kernel's table of symbols twice, a fifth of a second of a
processor, to find out whether adapters for RDMA reach memory of GPUs (docs/scaling.md). For tests
that start hundreds of processes on virtual hosts the table is empty, where this user may hide it.
"""

from __future__ import annotations

import functools
import subprocess

_HIDING = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount --bind /dev/null /proc/kallsyms && exec "$@"',
    "sh",
)


def with_short_start(command: list[str]) -> list[str]:
    """The command, in a mount namespace of its own where that table is empty, if that can be."""
    return [*_HIDING, *command] if _can_hide() else command


@functools.cache
def _can_hide() -> bool:
    try:
        done = subprocess.run(
            [*_HIDING, "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0

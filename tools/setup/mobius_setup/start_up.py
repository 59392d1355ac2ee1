# SPDX-License-Identifier: BSD-3-Clause
"""Makes processes of the tests between hosts start faster.

Debian's libfabric reads the kernel's table of symbols twice in each process, which takes a fifth of
a second, to find out whether RDMA adapters reach GPU memory (docs/scaling.md). For tests that start
hundreds of processes on virtual hosts this table is empty, if this user may hide it.
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
    """The command, with an empty table in a mount namespace of its own if this user may."""
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

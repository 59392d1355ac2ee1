# SPDX-License-Identifier: BSD-3-Clause
"""Beds of two and three hosts for the tests of this folder; skips where beds are impossible."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import bed as beds


def remove_forgotten() -> None:
    """Remove beds of test runs that were killed."""
    for name in beds.all_names():
        owner = re.fullmatch(r"test-(\d+)-\d", name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            beds.down(name)


@contextmanager
def made(hosts: int) -> Iterator[beds.Bed]:
    """Make a bed for this run, and check for processes that tests left on it."""
    reason = beds.why_not()
    if reason is not None:
        pytest.skip(reason)
    remove_forgotten()
    name = f"test-{os.getpid()}-{hosts}"
    try:
        yield beds.up(name, hosts)
    finally:
        beds.down(name)


@pytest.fixture(scope="session")
def bed() -> Iterator[beds.Bed]:
    """Yield a bed of two hosts."""
    with made(2) as one:
        yield one


@pytest.fixture(scope="session")
def bed_of_three() -> Iterator[beds.Bed]:
    """Yield a bed of three hosts."""
    with made(3) as one:
        yield one

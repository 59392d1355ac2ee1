# SPDX-License-Identifier: BSD-3-Clause
"""Makes launch_tools importable and gives each test a job that cannot outlive it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))

from launch_tools import Launcher


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    """Yield a Launcher whose processes are all gone when the test ends, or the test fails."""
    launcher = Launcher(tmp_path)
    try:
        yield launcher
    finally:
        left = launcher.clean_up()
    assert left == [], f"processes were left behind: {left}"

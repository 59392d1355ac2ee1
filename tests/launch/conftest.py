# SPDX-License-Identifier: BSD-3-Clause
"""Makes launch_tools importable and gives each test a job that cannot outlive it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from launch_tools import Launcher

# The launcher leaves alone what was ignored when it was started, and so does each process between:
# a shell ignores SIGINT and SIGQUIT for what it starts in the background, nohup SIGHUP.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    """Yield a Launcher whose processes are all gone when the test ends, or the test fails."""
    launcher = Launcher(tmp_path)
    try:
        yield launcher
    finally:
        left = launcher.clean_up()
    assert left == [], f"processes were left behind: {left}"

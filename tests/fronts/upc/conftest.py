# SPDX-License-Identifier: BSD-3-Clause
"""Without libclang nothing here can run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from upc_tools import missing


@pytest.fixture(scope="session", autouse=True)
def _libclang() -> None:
    if missing():
        pytest.skip(missing())

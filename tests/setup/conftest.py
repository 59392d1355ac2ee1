# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of the set-up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from setup_trees import BASICS, FAKES, ROOT, Checkout, Installed


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """In a folder with spaces, since the real one may be."""
    root = tmp_path / "a check out"
    root.mkdir()
    for name in ("mobius", "CMakePresets.json", "CMakeLists.txt"):
        shutil.copy2(ROOT / name, root)
    for name in ("tools/setup", "tools/instrument", "tools/mobius/help", "bench/suite"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in BASICS:
        found = shutil.which(name)
        assert found, f"'{name}' is not in PATH"
        (programs / name).symlink_to(found)
    made = Checkout(root, programs, tmp_path / "calls")
    made.forget_calls()
    for name, body in FAKES.items():
        made.fake(name, body)
    return made


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    base = tmp_path_factory.mktemp("install")
    first = base / "first place"
    done = subprocess.run(
        [str(ROOT / "mobius"), "install", "--prefix", str(first)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    moved = base / "second place"
    first.rename(moved)
    return Installed(moved, first)

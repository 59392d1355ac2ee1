# SPDX-License-Identifier: BSD-3-Clause
"""What is copied into an installed tree is compiled there, of the source as it is now."""

from __future__ import annotations

import py_compile
from importlib.machinery import SourceFileLoader
from importlib.metadata import Distribution
from pathlib import Path
from types import CodeType

import pytest
from mobius_setup.vendor import copy_distribution

SOURCE = "def answer():\n    return {}\n"


def distribution_in(folder: Path) -> Distribution:
    about = folder / "thing-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1\n", "utf-8")
    (about / "RECORD").write_text("thing.py,,\nother.py,,\n", "utf-8")
    (folder / "thing.py").write_text(SOURCE.format(42), "utf-8")
    (folder / "other.py").write_text("no Python", "utf-8")
    return Distribution.at(about)


def compiled_in(target: Path) -> CodeType:
    """What an import takes: not the source, which becomes another one first."""
    (target / "thing.py").write_text(SOURCE.format("'the source'"), "utf-8")
    code = SourceFileLoader("thing", str(target / "thing.py")).get_code("thing")
    assert code is not None
    return code


def answer_of(code: CodeType) -> object:
    names: dict[str, object] = {}
    exec(code, names)
    answer = names["answer"]
    assert callable(answer)
    return answer()


@pytest.mark.parametrize("before", [None, 42, 7777])
def test_compiled_files(tmp_path: Path, before: int | None) -> None:
    """Not compiled here before, compiled, and compiled of another source."""
    here, target = tmp_path / "here", tmp_path / "target"
    distribution = distribution_in(here)
    if before is not None:
        text = (here / "thing.py").read_text("utf-8")
        (here / "thing.py").write_text(SOURCE.format(before), "utf-8")
        py_compile.compile(
            str(here / "thing.py"), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP
        )
        if before != 42:
            (here / "thing.py").write_text(text, "utf-8")
    copy_distribution(distribution, target)
    code = compiled_in(target)
    assert answer_of(code) == 42
    assert (target / "other.py").exists()
    content = b"".join(path.read_bytes() for path in target.rglob("*.pyc"))
    assert b"thing.py" in content
    assert str(tmp_path).encode() not in content

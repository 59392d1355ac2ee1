# SPDX-License-Identifier: BSD-3-Clause
"""Makes instrument_tools importable; a fake MPI has a folder of its own and leaves no process."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from instrument_tools import HERE, PACKAGES, FakeInstrument, SyntheticRun, processes_of


@pytest.fixture(scope="session")
def recorded() -> Path:
    """A trimmed results file of a real run on two CPUs of a virtual machine."""
    return HERE / "data" / "recorded.jsonl"


@pytest.fixture(scope="session")
def forks() -> ForkServerContext:
    """Makes processes that have imported the command line with all that it may import later."""
    context = multiprocessing.get_context("forkserver")
    modules = ("cli", "compare", "presentation")
    context.set_forkserver_preload(
        [*(f"mobius_instrument.{name}" for name in modules), "scipy.stats"]
    )
    # Its server looks for modules where the environment says.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PACKAGES))
        forkserver.ensure_running()
    return context


@pytest.fixture
def instrument(tmp_path: Path, forks: ForkServerContext) -> Iterator[FakeInstrument]:
    for name in ("main.c", "mpi/loops.c", "other/loops.c"):
        source = tmp_path / "suite" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("int unused;\n")
    yield FakeInstrument(tmp_path, forks)
    assert processes_of(tmp_path) == []


@pytest.fixture
def synthetic(tmp_path: Path) -> Callable[[str], SyntheticRun]:
    return lambda name: SyntheticRun(tmp_path / name / "results.jsonl")

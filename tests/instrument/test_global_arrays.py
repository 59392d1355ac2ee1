# SPDX-License-Identifier: BSD-3-Clause
"""The program of Global Arrays gives right results over our ARMCI and over Debian's ARMCI-MPI."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from mobius_instrument.libraries import armci, global_arrays, mpi
from mobius_instrument.libraries.base import Context, Start
from mobius_instrument.locations import Locations
from mobius_instrument.request import Request, find_candidates

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("MOBIUS_HOME_BIN") or ROOT / "build" / "release" / "bin")
CELLS = [f"global-arrays:{name}:none:allocate:procs=2" for name in ("product", "patches")]
SIZE = 8 * 256 * 256


def context_in(folder: Path) -> Context:
    locations = Locations((BIN,), None, folder, app_sources=ROOT / "apps")
    return Context(locations, lambda _: None, os.cpu_count() or 1)


def measure(words: tuple[str, ...], folder: Path) -> None:
    """Two processes, whose results must be right."""
    out = folder / "out.jsonl"
    done = subprocess.run(
        [*words, "--cells", ",".join(CELLS), "--sizes", str(SIZE), "--out", str(out)],
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [one["cell"] for one in records if one["type"] == "samples"] == CELLS, records


def test_over_our_armci(tmp_path: Path) -> None:
    found = global_arrays.on_mobius(BIN / "mobius", context_in(tmp_path))
    if not found:
        pytest.skip("Global Arrays is not installed")
    measure(found[global_arrays.NAME](Start()), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("family", global_arrays.FAMILIES)
def test_over_armci_mpi(family: str, tmp_path: Path) -> None:
    place = global_arrays.place_of(family)
    archive = armci.archive_of(place.mpicc, family) if place else None
    if place is None or archive is None:
        pytest.skip(f"ARMCI-MPI for {family} is not installed")
    text, failure = mpi.identify(place)
    if "development files are missing" in failure:
        pytest.skip(failure)
    assert failure == ""
    before = global_arrays.settings_for(family, mpi.describe_version(text)[2])
    found = global_arrays.application(place, family, (str(archive),), context_in(tmp_path), before)
    if not found:
        pytest.skip(f"Global Arrays for {family} is not installed")
    measure(found[global_arrays.NAME](Start()), tmp_path)


@pytest.mark.parametrize("wanted", [(), ("mobius",)])
def test_the_experiment_brings_every_armci(wanted: tuple[str, ...], tmp_path: Path) -> None:
    request = Request(tmp_path, ("global-arrays",), wanted, install=False)
    found = find_candidates(request, context_in(tmp_path).locations)
    assert {one.asked for one in found if one.name in armci.NAMES} == {not wanted}


def test_only_mpich_4_0_has_a_setting() -> None:
    assert global_arrays.settings_for("mpich", "4.0.2") == ("env", "ARMCI_USE_WIN_ALLOCATE=0")
    assert global_arrays.settings_for("mpich", "4.1") == ()
    assert global_arrays.settings_for("openmpi", "4.1.4") == ()

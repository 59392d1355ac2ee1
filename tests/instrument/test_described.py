# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that the user describes in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from instrument_tools import HERE, FakeInstrument
from mobius_instrument.errors import InstrumentError
from mobius_instrument.libraries.base import Candidate, missing
from mobius_instrument.libraries.described import described, read_description, shipped_variants

MPICC = HERE / "fake" / "mpicc"


def write(folder: Path, text: str) -> Path:
    path = folder / "variant.ini"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_variant_is_a_column_of_its_own(instrument: FakeInstrument) -> None:
    text = "[library]\nname=variant\nlabel=A variant\nof=mpicc1\n[environment]\nFAKE_PROGRAM={}\n"
    path = write(instrument.folder, text)
    # The library itself measures nothing, as its environment says otherwise.
    instrument.behave({"*": "refuse"})
    done = instrument.bench("pingpong", "--repeats", "1", "--library", str(path))
    assert done.returncode == 0, done.stderr
    labels = {record["library"]: record["label"] for record in instrument.records("library")}
    assert labels["variant"] == "A variant"
    assert {record["library"] for record in instrument.records("samples")} == {"variant"}
    assert {record["library"] for record in instrument.records("outcome")} == {"mpicc1"}


def test_another_mpi(instrument: FakeInstrument) -> None:
    path = write(instrument.folder, f"[library]\nname = mine\nmpicc = {MPICC}\n")
    done = instrument.bench("pingpong", "--repeats", "1", "--library", str(path))
    assert done.returncode == 0, done.stderr
    assert {record["library"] for record in instrument.records("samples")} == {"mpicc1", "mine"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = x", "cannot be understood"),
        ("[library]\nname = A B\nof = x", "name must be"),
        ("[library]\nof = x", "name must be"),
        ("[library]\nname = x", "either of"),
        ("[library]\nname = x\nof = y\nmpicc = z", "either of"),
        ("[library]\nname = x\nof = y\ncolour = red", "unknown colour"),
        ("[library]\nname = x\nof = y\n[more]\na = b", "unknown more"),
        (
            "[library]\nname = x\nmpicc = /nowhere/mpicc",
            ": mpicc: there is no file '/nowhere/mpicc'",
        ),
    ],
)
def test_descriptions_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InstrumentError, match=message):
        read_description(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[library]\nname = x\nof = nobody", "no library 'nobody' here"),
        ("[library]\nname = mpicc1\nof = mpicc1", "there is a library 'mpicc1' already"),
    ],
)
def test_descriptions_that_do_not_fit(instrument: FakeInstrument, text: str, message: str) -> None:
    path = write(instrument.folder, text)
    done = instrument.bench("pingpong", "--library", str(path))
    assert done.returncode == 2
    assert message in done.stderr


def test_shipped_variants_are_of_libraries_that_are_known() -> None:
    known = [
        Candidate(name, name, True, lambda _context: missing("x", "x", "mpi", "no"))
        for name in ("mpich", "openmpi")
    ]
    found = shipped_variants(known)
    assert {one.of for one in found} == {"mpich", "openmpi"}
    assert all(one.environment and one.label for one in found)
    assert shipped_variants(known[:1]) == tuple(one for one in found if one.of == "mpich")
    described(found, known)

# SPDX-License-Identifier: BSD-3-Clause
"""An MPI with its windows on Möbius as a library of its own, and what a report says of the two."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from instrument_tools import HERE, FakeInstrument, SyntheticRun
from mobius_instrument.presentation import write_report
from mobius_instrument.results import read_results

Make = Callable[[str], SyntheticRun]
# Says that it was called, and becomes what it was asked to start.
COMMAND = """#!/bin/sh
[ "$1" != --version ] || { echo mobius 1; exit; }
echo "$1 $2 $3 $4" >>"${0%/*}/called"
shift 4
exec "$@"
"""


@pytest.fixture
def fronted(instrument: FakeInstrument) -> FakeInstrument:
    """With a stand-in of the command and of Open MPI's front."""
    for folder in ("bin", "lib"):
        (instrument.folder / folder).mkdir()
    command = instrument.folder / "bin" / "mobius"
    command.write_text(COMMAND)
    command.chmod(0o755)
    (instrument.folder / "lib" / "libmobius_ompi.so").write_text("")
    return instrument


def arguments(instrument: FakeInstrument, libraries: str) -> list[str]:
    words = instrument.bench_arguments()
    words[words.index("mpicc1")] = libraries
    return words


def test_both_are_measured_side_by_side(fronted: FakeInstrument) -> None:
    done = fronted.run(*arguments(fronted, "mpicc1,mpicc1+mobius"), "--repeats", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    labels = {record["library"]: record for record in fronted.records("library")}
    assert list(labels) == ["mpicc1", "mpicc1+mobius"]
    assert labels["mpicc1"]["label"].startswith("Open MPI 9.9.9 (")
    assert labels["mpicc1+mobius"]["label"].startswith("Open MPI 9.9.9 on Möbius (")
    assert labels["mpicc1+mobius"]["kind"] == "front"
    measured = {
        name: {record["cell"] for record in fronted.records("samples") if record["library"] == name}
        for name in labels
    }
    assert measured["mpicc1"] == measured["mpicc1+mobius"] != set()
    called = (fronted.folder / "bin" / "called").read_text().splitlines()
    assert set(called) == {"mpirun --quiet --front ompi"}


def test_only_when_asked_for_beside_a_named_compiler(fronted: FakeInstrument) -> None:
    done = fronted.bench("--repeats", "1", "pingpong")
    assert done.returncode == 0, done.stderr
    assert {record["library"] for record in fronted.records("library")} == {"mpicc1"}
    assert not (fronted.folder / "bin" / "called").exists()


def test_a_front_that_was_not_built_is_said(fronted: FakeInstrument) -> None:
    front = fronted.folder / "lib" / "libmobius_ompi.so"
    front.rename(front.with_name("libmobius_mpich.so"))
    (fronted.folder / "share" / "mobius").mkdir(parents=True)
    (fronted.folder / "share" / "mobius" / "mpi-fronts").write_text("ompi|missing|no header\n")
    done = fronted.run(*arguments(fronted, "mpicc1,mpicc1+mobius"), "--repeats", "1", "pingpong")
    assert done.returncode == 0, done.stderr
    (record,) = [r for r in fronted.records("library") if r["library"] == "mpicc1+mobius"]
    assert record["status"] == "missing"
    assert record["detail"] == "libmobius_ompi was not built: no header"


def test_no_front_no_second_library(instrument: FakeInstrument) -> None:
    done = instrument.run(
        "bench", "--list", "--no-peers", "--mpicc", str(HERE / "fake" / "mpicc"),
    )  # fmt: skip
    assert "mpicc1" in done.stdout
    assert "+mobius" not in done.stdout


def test_the_first_page_says_what_the_front_gives(synthetic: Make) -> None:
    run = synthetic("fronted")
    run.library("mpich", "MPICH 5.0.2 (PyPI)")
    run.library("mpich+mobius", "MPICH 5.0.2 on Möbius (PyPI)", "front")
    for name, times in (("mpich", 300.0), ("mpich+mobius", 30.0)):
        for operation in ("put", "get"):
            cell = f"completion:{operation}:flush:allocate"
            run.series(name, cell, lambda size, _, ns=times: ns + size / 10)  # type: ignore[misc]
        slow = 4.0 if "+" in name else 1.0
        run.series(name, "matrix:put:fence:create", lambda *_, ns=slow: 100 * ns, sizes=(8,))
        run.series(name, "pingpong:sendrecv:none:local", lambda *_: 500.0)
    folder = run.path.parent
    written = write_report(read_results(run.write()), folder)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert 'id="on-mobius"' in page
    (said,) = [text for text in written.sentences if "mobius mpirun" in text]
    # 2 operations of 4 sizes, of which 1 MB is 105 µs in both; the fence; no send/receive.
    counted = re.search(r"faster in (\d+) of (\d+) cells and sizes and slower in (\d+)", said)
    assert counted is not None
    assert (int(counted[2]), int(counted[3])) == (9, 1)
    assert 4 <= int(counted[1]) <= 6
    assert "A put of 8 B with its flush takes 30.8 ns instead of 300 ns." in said
    assert "matrix put of 8 B (fence, malloc memory), 4.0 times as long" in said

# SPDX-License-Identifier: BSD-3-Clause
"""Standard output on a full disk, to a reader who has gone, and closed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from instrument_tools import FakeInstrument, SyntheticRun

COMMANDS = [
    ["--help"],
    ["bench", "--help"],
    ["bench", "--no-peers", "--list"],
    ["report", "--from", "RECORDED", "--out", "out"],
    ["compare", "RECORDED", "RECORDED"],
    ["compare", "--json", "RECORDED", "RECORDED"],
]


def run_to(
    stdout: IO[bytes] | int, instrument: FakeInstrument, words: list[str], recorded: Path
) -> subprocess.CompletedProcess[str]:
    arguments = [str(recorded) if word == "RECORDED" else word for word in words]
    return subprocess.run(
        instrument.command(*arguments), env=instrument.full_environment(), cwd=instrument.folder,
        stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_one_line(
    instrument: FakeInstrument, recorded: Path, words: list[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_to(full, instrument, words, recorded)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith("mobius: warning: ")]
    assert lines == ["mobius: error: writing standard output failed: No space left on device"]


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_who_has_gone_is_no_error(
    instrument: FakeInstrument, recorded: Path, words: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_to(writer, instrument, words, recorded)
    os.close(writer)
    assert done.returncode == 141
    assert "mobius: error" not in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_measured_cells_are_kept(instrument: FakeInstrument) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_to(full, instrument, instrument.bench_arguments(), Path())
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("mobius: error: writing standard output failed")
    assert instrument.bench().returncode == 0


def test_closed_standard_output(
    instrument: FakeInstrument, synthetic: Callable[[str], SyntheticRun]
) -> None:
    run = synthetic("one")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.series("mobius", "locks:put:mutex:allocate:procs=2", lambda *_: 90.0, sizes=(8,))
    words = ["report", "--from", str(run.write()), "--out", str(instrument.out)]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *instrument.command(*words)],
        env=instrument.full_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (instrument.out / "index.html").exists()

# SPDX-License-Identifier: BSD-3-Clause
"""`./mobius docs record lu` and its like: programs that take turns, and their tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mobius_setup.docs import applications, recording, tables
from mobius_setup.docs.applications import Program
from mobius_setup.docs.recording import DocsError

# Counts its own starts: the n-th takes the n-th of some times.
SCRIPT = """\
import json, pathlib, sys
count = pathlib.Path(sys.argv[1])
times = [float(one) for one in sys.argv[2].split()]
started = int(count.read_text()) if count.exists() else 0
count.write_text(str(started + 1))
print(json.dumps({"seconds": times[started], "communication": 0.25, "checksum": sys.argv[3]}))
"""


def program(
    folder: Path, name: str, times: str, end: str = "same", beside: tuple[str, ...] = ()
) -> Program:
    script = folder / "program.py"
    script.write_text(SCRIPT, encoding="utf-8")
    return Program(name, (sys.executable, str(script), str(folder / name), times, end), beside)


def test_ratios_are_those_of_rounds(tmp_path: Path) -> None:
    one = program(tmp_path, "one", "2 4 8")
    two = program(tmp_path, "two", "1 8 6", beside=("one",))
    first, second = applications.by_turns(tmp_path, "64", [one, two], [], 3, steps=2)
    assert (first["key"], first["ns"], first["low_ns"]) == ("64 one", 2e9, 1e9)
    assert "ratios" not in first
    assert second["ratios"] == {"one": [0.75, 0.5, 2.0]}
    assert second["communication"] == 0.25


def test_different_results_are_not_recorded(tmp_path: Path) -> None:
    programs = [program(tmp_path, "one", "1"), program(tmp_path, "two", "1", "other")]
    with pytest.raises(DocsError, match="64: the programs give different results"):
        applications.by_turns(tmp_path, "64", programs, [], 1)


def test_a_program_without_a_result_is_named(tmp_path: Path) -> None:
    broken = Program("broken", ("sh", "-c", "echo no memory >&2; exit 1"))
    with pytest.raises(DocsError, match=r"'sh -c .*' has no result: no memory"):
        applications.by_turns(tmp_path, "64", [broken], [], 1)


def test_the_table_of_placements(tmp_path: Path) -> None:
    run = {
        "command": "./mobius docs record lu-hosts", "date": "2026-11-28", "version": "9.9",
        "commit": "abc", "others": 0.0,
        "host": {"cpu": "x", "cores": 2, "kernel": "6.1", "virtual": None},
    }  # fmt: skip
    figures = [
        {"key": "512 plain 2 hybrid", "ns": 1.5e6, "communication": 0.2, "waiting": 0.1},
        {"key": "512 plain 2 cyclic", "ns": 3e6, "ratios": {"hybrid": [2.0, 1.9, 2.2]}},
        {"key": "512 plain 2 block", "ns": 6e6, "ratios": {"hybrid": [4.0, 3.5, 5.0]}},
    ]
    file = tmp_path / recording.FOLDER / "lu-hosts.jsonl"
    recording.write(file, run, figures)
    line = tables.make("lu-hosts", tmp_path).splitlines()[2]
    assert line == (
        "| 512 rows, loops, 2 processes | 1.50 ms | 2.00 (1.90–2.20) | 4.00 (3.50–5.00) | 20.0 % |"
        " 10.0 % |"
    )
    recording.write(file, run, [*figures[:2], {"key": "512 plain 2 block", "ns": 1.0}])
    with pytest.raises(DocsError, match="'512 plain 2 block' has no ratio to 'hybrid'"):
        tables.make("lu-hosts", tmp_path)

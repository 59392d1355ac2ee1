# SPDX-License-Identifier: BSD-3-Clause
"""Reading results: whole, damaged, of another schema, not results at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from instrument_tools import SyntheticRun
from mobius_instrument.cells import Cell
from mobius_instrument.errors import InstrumentError
from mobius_instrument.results import ResultsWriter, find_results, read_results, set_aside

CELL = "completion:put:flush:allocate"
Make = Callable[[str], SyntheticRun]


def small_run(synthetic: Make) -> Path:
    run = synthetic("a")
    run.library("mobius", "Möbius 1", "mobius")
    run.series("mobius", CELL, lambda size, _: 10.0 + size)
    run.outcome("mobius", "completion:get:flush:create", "refused", "not offered")
    return run.write()


def test_whole_file(synthetic: Make) -> None:
    results = read_results(small_run(synthetic))
    key = ("mobius", Cell.parse(CELL))
    assert sorted(results.samples[key]) == [4, 8, 65536, 1048576]
    assert sorted(results.samples[key][4]) == [0, 1, 2]
    assert results.label("mobius") == "Möbius 1"
    assert [outcome.status for outcome in results.outcomes] == ["refused"]
    assert results.warnings == []


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"samples","library":"mobius"',
        "not JSON",
        "[]",
        '"text"',
        "{}",
        '{"type":"samples","library":"m","cell":"a:b","bytes":4,"repeat":0,"samples_ns":[1]}',
        '{"type":"samples","library":"m","cell":"a:b:c:d","bytes":4,"repeat":0,"samples_ns":[]}',
        '{"type":"samples","library":"m","cell":"a:b:c:d","bytes":4,"repeat":0,"samples_ns":["x"]}',
        '{"type":"samples","library":"m","cell":"a:b:c:d","bytes":4,"repeat":0,"samples_ns":[-1]}',
        '{"type":"samples","library":"m","cell":"a:b:c:d","bytes":4,"repeat":0,"samples_ns":[NaN]}',
        '{"type":"samples","library":7,"cell":"a:b:c:d","bytes":4,"repeat":0,"samples_ns":[1]}',
        '{"type":"launch","library":"m"}',
        '{"type":"outcome","library":"m","cell":"a:b","repeat":0,"status":"hung"}',
        '{"type":"library","library":"m"}',
        "\x00\xff",
    ],
)
def test_damaged_line_is_left_out_and_named(synthetic: Make, line: str) -> None:
    path = small_run(synthetic)
    whole = read_results(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:3], line, *lines[3:]]) + "\n", encoding="utf-8")
    results = read_results(path)
    assert results.warnings == ["results.jsonl: damaged line 4 left out"]
    assert results.samples.keys() == whole.samples.keys()


def test_many_damaged_lines_are_counted(synthetic: Make) -> None:
    path = small_run(synthetic)
    with path.open("a") as file:
        file.write("x\n" * 5)
    (warning,) = read_results(path).warnings
    assert warning.endswith("and 2 more left out")


def test_bytes_that_are_no_text(synthetic: Make) -> None:
    path = small_run(synthetic)
    with path.open("ab") as file:
        file.write(b"\xff\xfe\n")
    assert len(read_results(path).warnings) == 1


def test_unknown_types_are_for_later_versions(synthetic: Make) -> None:
    path = small_run(synthetic)
    with path.open("a") as file:
        file.write('{"type":"weather","sun":true}\n')
    assert read_results(path).warnings == []


def test_another_schema(synthetic: Make) -> None:
    path = small_run(synthetic)
    lines = path.read_text(encoding="utf-8").splitlines()
    run = json.loads(lines[0])
    run["schema"] = 7
    path.write_text("\n".join([json.dumps(run), *lines[1:]]), encoding="utf-8")
    with pytest.raises(InstrumentError, match="schema 7, this instrument reads schema 1"):
        read_results(path)


def test_file_that_is_no_results(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("hello\n")
    with pytest.raises(InstrumentError, match="not a results file"):
        read_results(path)
    with pytest.raises(InstrumentError, match="no results at"):
        find_results(tmp_path)


def test_later_samples_of_a_repeat_replace_earlier_ones(synthetic: Make) -> None:
    path = small_run(synthetic)
    with ResultsFile(path) as writer:
        writer.append(
            {
                "type": "samples", "library": "mobius", "cell": CELL, "bytes": 4, "repeat": 1,
                "batch": 1, "samples_ns": [1.0, 2.0],
            }
        )  # fmt: skip
    kept = read_results(path).samples["mobius", Cell.parse(CELL)][4]
    assert np.array_equal(kept[1], [1.0, 2.0])
    assert len(kept[0]) == 40


class ResultsFile:
    """Closes its writer."""

    def __init__(self, path: Path) -> None:
        self.writer = ResultsWriter(path)

    def __enter__(self) -> ResultsWriter:
        return self.writer

    def __exit__(self, *_: object) -> None:
        self.writer.close()


def test_appending_after_a_half_line_starts_a_new_one(synthetic: Make) -> None:
    path = small_run(synthetic)
    with path.open("a") as file:
        file.write('{"type":"laun')
    with ResultsFile(path) as writer:
        writer.append({"type": "weather"})
    assert path.read_text(encoding="utf-8").splitlines()[-2:] == [
        '{"type":"laun',
        '{"type":"weather"}',
    ]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultsFile(path), pytest.raises(InstrumentError, match="being written by another"):
        ResultsWriter(path)


def test_set_aside_never_overwrites(tmp_path: Path) -> None:
    for expected in ("results.1.jsonl", "results.2.jsonl"):
        path = tmp_path / "results.jsonl"
        path.write_text("x")
        assert set_aside(path).name == expected

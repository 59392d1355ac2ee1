# SPDX-License-Identifier: BSD-3-Clause
"""`./mobius docs`: tables from recordings, and what is not described in headers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from mobius_setup.docs import figures, markdown, record, recording, reference, tables
from mobius_setup.docs.recording import DocsError
from setup_trees import ROOT

RUN = {
    "command": "./mobius docs record network", "date": "2026-11-28", "version": "9.9",
    "commit": "abc", "others": 0.0,
    "host": {"cpu": "Some(R) CPU   x", "cores": 2, "kernel": "6.1", "virtual": None},
}  # fmt: skip
BLOCK = "before\n<!-- figures: {} -->\nold\n<!-- end of figures -->\nafter\n"


def network(root: Path, **run: object) -> None:
    names = (
        "put get fetch-add put-one-way message-one-way put-sleeping put-computing put-64K get-64K"
        " strided-64K put-1M get-1M put-stream-1M get-stream-1M"
    ).split()
    measured = [
        {"key": name, "ns": 1234.0 * (i + 1), "socket_ns": 1000.0, "ratio": 1.234 * (i + 1)}
        for i, name in enumerate(names)
    ]
    recording.write(root / recording.FOLDER / "network.jsonl", {**RUN, **run}, measured)


def test_a_table_is_made_between_its_markers(tmp_path: Path) -> None:
    network(tmp_path)
    text = figures.filled(BLOCK.format("between-hosts"), tmp_path)
    assert text.startswith("before\n<!-- figures: between-hosts -->\n\n| operation |")
    assert text.endswith("\n<!-- end of figures -->\nafter\n")
    assert "| put of 8 bytes, complete | 1.23 µs | 1.00 µs | 1.23 |\n" in text
    assert "old" not in text
    assert figures.filled(text, tmp_path) == text


def test_a_table_names_machine_version_date_and_command(tmp_path: Path) -> None:
    network(tmp_path)
    source = tables.make("between-hosts", tmp_path).splitlines()[-1]
    assert source == (
        "*Some CPU x, machine with 2 processors, Linux 6.1; Möbius 9.9 (abc), 2026-11-28; recorded"
        " by `./mobius docs record network`.*"
    )
    network(tmp_path, others=1.26)
    assert "Other programs used 1.3 processors meanwhile." in tables.make("between-hosts", tmp_path)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0.364, "0.36 ns"), (6.302, "6.30 ns"), (29.6, "30 ns"), (999.4, "999 ns"),
        (999.6, "1.00 µs"), (12_345.0, "12.3 µs"), (123_456.0, "123 µs"), (8.5e6, "8.50 ms"),
        (2.0e9, "2.00 s"),
    ],
)  # fmt: skip
def test_times_have_three_digits(ns: float, text: str) -> None:
    assert markdown.time_text(ns) == text


def test_missing_parts_are_named(tmp_path: Path) -> None:
    with pytest.raises(DocsError, match=r"no table 'nonsense'; there are: .*between-hosts"):
        figures.filled(BLOCK.format("nonsense"), tmp_path)
    with pytest.raises(DocsError, match=r"make it with: \./mobius docs record network"):
        figures.filled(BLOCK.format("between-hosts"), tmp_path)
    with pytest.raises(DocsError, match="has no line '<!-- end of figures -->' of its own"):
        figures.filled("<!-- figures: between-hosts -->\n", tmp_path)
    network(tmp_path)
    path = tmp_path / recording.FOLDER / "network.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:3]), encoding="utf-8")
    with pytest.raises(DocsError, match="has no figure 'fetch-add'"):
        tables.make("between-hosts", tmp_path)
    path.write_text("\n".join([lines[0], lines[1], lines[1]]), encoding="utf-8")
    with pytest.raises(DocsError, match="two figures have one key"):
        recording.read(path)
    path.write_text(json.dumps({"type": "figure"}), encoding="utf-8")
    with pytest.raises(DocsError, match="is not a run of schema 1"):
        recording.read(path)


def test_every_table_is_of_a_part_that_can_be_recorded_and_on_a_page() -> None:
    named = {
        name
        for page in figures.pages(ROOT)
        for name in re.findall(r"<!-- figures: (\S+) -->", page.read_text(encoding="utf-8"))
    }
    assert named == set(tables.TABLES)
    assert {part for part, _ in tables.TABLES.values()} == set(record.PARTS)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(DocsError, match="there is no part 'nonsense'; there are: instructions"):
        record.run(ROOT, ["nonsense"])


HEADER = """\
/** @file
 *  A header. */

/** A number. */
typedef int number_t;

enum { kDescribed = 1 /**< one */, kNot = 2 };

/** Does one thing.
 *  @param much  how much
 *  @return nothing */
void one(int much);
/** Does it twice; as one(). */
void two(int much, int more);
/** Does it `often`. */
void three(int often);
void four(void);
/** Does it.
 *  @param wrong  there is no such thing */
void five(void);
"""


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    if shutil.which("doxygen") is None:
        pytest.skip(reference.MISSING)
    (tmp_path / "include" / "mobius").mkdir(parents=True)
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    (tmp_path / "docs" / "fronts").mkdir()
    shutil.copy(ROOT / "docs" / "Doxyfile", tmp_path / "docs")
    page = "# API reference\n\n[a header](../include/mobius/a.h)\n"
    (tmp_path / "docs" / "reference.md").write_text(page, encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text("project(mobius VERSION 9.9 )", encoding="utf-8")
    (tmp_path / "include" / "mobius" / "a.h").write_text(HEADER, encoding="utf-8")
    return tmp_path


def test_missing_descriptions_are_found(headers: Path) -> None:
    found = reference.problems(headers)
    wrong = [line for line in found if "argument 'wrong'" in line]
    assert len(wrong) == 1
    assert [line.partition(": ")[2] for line in found if line not in wrong] == [
        "two: parameter 'more' is not described",
        "function four is not described",
        "constant kNot is not described",
    ]


def test_the_site_has_the_functions_and_its_links_lead_to_them(headers: Path) -> None:
    assert reference.run(headers, check=False) == 0
    site = headers / reference.SITE
    index = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="a_8h.html"' in index
    assert "Does it twice" in (site / "a_8h.html").read_text(encoding="utf-8")
    assert "9.9" in index

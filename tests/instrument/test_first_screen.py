# SPDX-License-Identifier: BSD-3-Clause
"""The report's first screen: the verdict, the table of scores, the summary to paste elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from instrument_tools import SyntheticRun
from mobius_instrument.presentation import write_report
from mobius_instrument.results import read_results

Make = Callable[[str], SyntheticRun]
SMALL, LARGE = 8, 1 << 20
FENCE = "sync-cost:put:fence:allocate"
LATE = "progress:put:lock:create:ms=50"


def add_puts(run: SyntheticRun, library: str, small_ns: float, large_ns: float) -> None:
    for operation in ("put", "get"):
        run.series(
            library,
            f"completion:{operation}:flush:allocate",
            lambda size, _: small_ns if size <= SMALL else large_ns,
            sizes=(4, SMALL, LARGE),
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on Möbius, two MPIs, and one of them on Möbius."""
    path = tmp_path_factory.mktemp("first")
    run = SyntheticRun(path / "results.jsonl")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("limits", "limit (threads, memcpy)", "limit")
    run.library("good", "Good MPI 1.0 (PyPI)")
    run.library("good+mobius", "Good MPI 1.0 on Möbius (PyPI)", "front")
    run.library("bad", "Bad MPI 2.0 (PyPI)")
    add_puts(run, "mobius", 6.0, 40_000.0)
    add_puts(run, "good", 18.0, 30_000.0)
    add_puts(run, "good+mobius", 9.0, 35_000.0)
    add_puts(run, "bad", 600.0, 90_000.0)
    # A second style, slower at the size of the question: not the one that counts.
    run.series("good", "completion:put:lock:create", lambda *_: 50.0, sizes=(4, SMALL, LARGE))
    run.series("mobius", FENCE, lambda *_: 300.0, sizes=(4,))
    run.series("good", FENCE, lambda *_: 320.0, sizes=(4,))
    run.outcome("good", "sync-cost:put:fence:create", "wrong", "other bytes came")
    run.outcome("bad", FENCE, "hung", "nothing for 30 s")
    run.outcome("good+mobius", FENCE, "refused", "no fence here")
    # A cell that was late in one launch and hung in the next is one cell.
    run.outcome("good", LATE, "hung", "nothing for 30 s")
    run.outcome("bad", LATE, "crashed", "ended by SIGSEGV")
    for library, cell, value, time_ns in (
        ("mobius", "progress:put:flush:create:ms=50", "yes", 4_000.0),
        ("mobius", LATE, "yes", 7_000.0),
        ("good", "progress:put:flush:create:ms=50", "yes", 2_000.0),
        ("good", LATE, "no", 50_000_000.0),
    ):
        run.fact(library, cell, "completes", value, time_ns, "")
    write_report(read_results(run.write()), path)
    return path


def rows_of(folder: Path) -> dict[str, list[str]]:
    """The summary's table: the cells of each question."""
    lines = (folder / "summary.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows[1:]}


def test_the_verdict_names_what_to_use(folder: Path) -> None:
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert re.search(
        r"For small puts use Möbius: 8 B complete in 6\.\d ns, (2\.9|3\.0|3\.1) times faster than"
        r" in Good MPI 1\.0 \(1\d ns\); in unchanged MPI programs on Möbius in (8\.9|9\.0)",
        text,
    ), text
    assert "For large puts use Good MPI 1.0: 1 MB complete in" in text
    assert text.index("For small puts") < text.index("| put of 8 B")


def test_each_library_answers_with_its_fastest_way(folder: Path) -> None:
    rows = rows_of(folder)
    mobius, good, front, bad = rows["put of 8 B, complete"]
    assert mobius.startswith(("**6.", "**5.9"))
    assert good.startswith(("17.", "18."))
    assert front.startswith(("8.9", "9.0"))
    assert bad.endswith("ns")


def test_what_fails_is_marked(folder: Path) -> None:
    rows = rows_of(folder)
    mobius, good, front, bad = rows["put of 4 B by fence"]
    assert mobius.startswith("**")
    assert good.endswith("ns ✗")  # Another memory got wrong data.
    assert front == "refuses"
    assert bad == "✗ hangs"
    assert rows["any operation while the target computes"] == [
        "**7.00 µs**", "✗ 1 of 2 wait", "–", "✗ 1 of 1 fail",
    ]  # fmt: skip


def test_the_best_way_may_be_the_one_that_fails(synthetic: Make, tmp_path: Path) -> None:
    run = synthetic("fails")
    for name in ("one", "other"):
        run.library(name, f"{name} MPI 1.0")
        add_puts(run, name, 20.0, 30_000.0)
    run.outcome("one", "completion:put:flush:allocate", "wrong", "64 KB: other bytes came")
    write_report(read_results(run.write()), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    titles = re.findall(r'class="fault" title="([^"]*)"', page)
    assert set(titles) == {"1 way to do this, at some size: wrong data"}


def test_cells_lead_to_their_samples(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(samples/[^"]+)"', page)
    assert len(links) == len(set(links)) == 3 * 4 + 2
    for link in links:
        lines = (folder / link).read_text(encoding="utf-8").splitlines()
        assert [line[0] for line in lines[:2]] == ["#", "#"]
        assert [len(line.split()) for line in lines[2:]] == [40, 40, 40]  # three launches
    titles = re.findall(r'title="([^"]*the shortest;[^"]*)"', page)
    assert titles
    assert all("95 % interval" in title or "kinds of operation" in title for title in titles)


def test_colours_follow_the_ratio_to_the_shortest(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    row = next(row for row in page.split("<tr>") if "put of 8 B, complete</a>" in row)
    kinds = re.findall(r'class="n (best|near|far|worst|failed)"', row)
    assert kinds == ["best", "far", "near", "worst"]


def test_the_picture_is_one(folder: Path) -> None:
    assert (folder / "summary.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "![" in (folder / "summary.md").read_text(encoding="utf-8")


def test_equal_times_give_no_winner(synthetic: Make, tmp_path: Path) -> None:
    run = synthetic("equal")
    run.library("one", "One MPI 1.0")
    run.library("other", "Other MPI 1.0")
    add_puts(run, "one", 20.0, 30_000.0)
    add_puts(run, "other", 20.1, 30_000.0)
    write_report(read_results(run.write()), tmp_path)
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    expected = "For small puts no difference between One MPI 1.0 and Other MPI 1.0 is certain: 8 B"
    assert expected in text
    assert "| put of 8 B, complete | **20.0 ns** | **20.1 ns** |" in text
    assert "Möbius in" not in text


def test_results_without_these_questions_have_no_table(synthetic: Make, tmp_path: Path) -> None:
    run = synthetic("none")
    run.library("one", "One MPI 1.0")
    run.series("one", "apex:get:flush:allocate:k=1", lambda *_: 50.0, sizes=(8,))
    write_report(read_results(run.write()), tmp_path)
    assert not (tmp_path / "summary.md").exists()
    assert 'class="scores"' not in (tmp_path / "index.html").read_text(encoding="utf-8")

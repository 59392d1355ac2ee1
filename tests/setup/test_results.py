# SPDX-License-Identifier: BSD-3-Clause
"""The summing up of ./mobius test: nothing that went wrong may count as passed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mobius_setup import run_tests
from mobius_setup.results import Case, UnreadableResultsError, Verdict, read_junit
from mobius_setup.suites import Outcome, Suite, run_suite, run_suites

DATA = Path(__file__).parent / "data"


def verdicts(cases: list[Case]) -> dict[str, str]:
    return {case.name: case.verdict.value for case in cases}


def test_ctest_results() -> None:
    """Recorded from ctest 3.25: one case of each way to end."""
    cases = read_junit(DATA / "ctest.xml")
    assert verdicts(cases) == {
        "ok": "passed",
        "bad": "failed",
        "skip": "skipped",
        "gskip": "skipped",
        "missing": "failed",
        "hang": "failed",
        "off": "skipped",
        "crash": "failed",
        "needsfix": "failed",
    }
    details = {case.name: case.detail for case in cases}
    assert details["bad"] == "broken"
    assert details["skip"] == "SKIP: no libfabric here"
    assert details["gskip"] == "needs 4 cores"
    assert "Unable to find executable" in details["missing"]
    assert "signal" in details["crash"]
    assert {case.name: case.seconds for case in cases}["hang"] == 1.00147


def test_pytest_results(tmp_path: Path) -> None:
    cases = tmp_path / "test_cases.py"
    cases.write_text(
        "import time\n"
        "import pytest\n"
        "def test_good(): time.sleep(0.01)\n"  # pytest writes milliseconds
        "def test_bad(): assert 1 == 2\n"
        "def test_skipped(): pytest.skip('no such thing here')\n"
        "@pytest.fixture\n"
        "def broken(): raise OSError('gone')\n"
        "def test_error(broken): pass\n",
        encoding="utf-8",
    )
    junit = tmp_path / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", str(cases), "--junit-xml", str(junit)]
    suite = Suite("inner", [*command, "-c", "/dev/null"], tmp_path / "log", junit)
    found = {case.name.split("::")[-1]: case for case in run_suite(suite, tmp_path).cases}
    assert verdicts(list(found.values())).values()
    assert found["test_good"].verdict is Verdict.PASSED
    assert found["test_bad"].verdict is Verdict.FAILED
    assert "assert 1 == 2" in found["test_bad"].detail
    assert found["test_error"].verdict is Verdict.FAILED
    assert found["test_skipped"].verdict is Verdict.SKIPPED
    assert found["test_skipped"].detail == "no such thing here"
    assert found["test_good"].seconds > 0


@pytest.mark.parametrize("content", [None, "", "<testsuite><testcase name='a'"])
def test_unreadable_results(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "results.xml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableResultsError, match="no readable results"):
        read_junit(path)


def test_a_suite_that_dies_without_results_is_one_failure(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo last words; kill -9 $$"]
    outcome = run_suite(Suite("dies", command, tmp_path / "log", tmp_path / "none.xml"), tmp_path)
    assert [case.verdict for case in outcome.cases] == [Verdict.FAILED]
    assert "last words" in outcome.cases[0].detail


def test_a_suite_that_fails_with_good_results_is_a_failure(tmp_path: Path) -> None:
    junit = tmp_path / "results.xml"
    junit.write_text("<testsuite><testcase name='a'/></testsuite>", encoding="utf-8")
    outcome = run_suite(Suite("odd", ["false"], tmp_path / "log", junit), tmp_path)
    assert outcome.count(Verdict.PASSED) == 1
    assert outcome.count(Verdict.FAILED) == 1


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    outcome = run_suite(Suite("none", ["/nonexistent/x"], tmp_path / "log"), tmp_path)
    assert "cannot be started" in outcome.cases[0].detail


def test_a_hanging_suite_is_ended_with_all_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    command = ["sh", "-c", f"mkfifo '{fifo}'; sh -c \"exec cat '{fifo}'\" & wait"]
    suite = Suite("hangs", command, tmp_path / "log", limit_s=0.5)
    outcome = run_suite(suite, tmp_path)
    assert "still running" in outcome.cases[0].detail


def all_of(commands: list[str], root: Path, at_once: int) -> list[int]:
    suites = [
        Suite(str(place), ["sh", "-c", command], root / f"{place}.log", limit_s=30)
        for place, command in enumerate(commands)
    ]
    outcomes = sorted(run_suites(suites, root, at_once), key=lambda each: each.suite.name)
    return [outcome.count(Verdict.FAILED) for outcome in outcomes]


def test_suites_run_at_once_but_no_more_than_asked(tmp_path: Path) -> None:
    meets = "touch {0}; while ! [ -e {1} ]; do sleep 0.01; done"
    assert all_of([meets.format("a", "b"), meets.format("b", "a"), "exit 3"], tmp_path, 2) == [
        0,
        0,
        1,
    ]
    alone = "mkdir alone && sleep 0.2 && rmdir alone"
    assert all_of([alone, alone, alone], tmp_path, 1) == [0, 0, 0]


def make(verdict: Verdict) -> Outcome:
    suite = Suite("some", ["true"], Path("some.log"))
    return Outcome(suite, [Case("case", verdict, "the detail")], 0.1)


@pytest.mark.parametrize(
    ("outcomes", "line", "code"),
    [
        ([], "0 passed, 0 failed, 0 skipped", 1),
        ([make(Verdict.PASSED)], "1 passed, 0 failed, 0 skipped", 0),
        ([make(Verdict.SKIPPED)], "0 passed, 0 failed, 1 skipped", 1),
        ([make(Verdict.PASSED), make(Verdict.SKIPPED)], "1 passed, 0 failed, 1 skipped", 0),
        ([make(Verdict.PASSED), make(Verdict.FAILED)], "1 passed, 1 failed, 0 skipped", 1),
    ],
)
def test_last_line_and_exit_code(
    outcomes: list[Outcome], line: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tests._summarise(outcomes) == code
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == line
    assert ("the detail" in printed) == any(o.count(Verdict.PASSED) == 0 for o in outcomes)


def test_the_slowest_tests_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    suites = [Suite(name, ["true"], Path("some.log")) for name in ("one", "two")]
    cases = [[Case(f"case{i}", Verdict.PASSED, "", s * i) for i in range(9)] for s in (1.0, 10.0)]
    outcomes = [Outcome(suite, its, 0.1) for suite, its in zip(suites, cases, strict=True)]
    assert run_tests._summarise(outcomes) == 0
    listed = capsys.readouterr().out.partition("The slowest tests:\n")[2].splitlines()
    assert listed[0] == "    80.0 s  two: case8"
    assert [line.split()[-1] for line in listed[:8]] == [f"case{i}" for i in range(8, 0, -1)]
    assert listed[8:11] == ["     8.0 s  one: case8", "     7.0 s  one: case7", ""]


@pytest.mark.parametrize(
    ("quick", "full", "left_out"),
    [(False, False, "full"), (True, False, "slow full"), (False, True, ""), (True, True, "slow")],
)
def test_what_is_left_out(tmp_path: Path, quick: bool, full: bool, left_out: str) -> None:
    chosen = run_tests.Selection(tmp_path, quick, full, False, [], None)
    labels, marks = left_out.replace(" ", "|"), left_out.replace(" ", " and not ")
    ctest = run_tests._ctest(chosen, "release", tmp_path).command
    assert ("--label-exclude" in ctest) == (left_out != "")
    assert not left_out or f"^({labels})$" in ctest
    inner = run_tests._pytest(chosen, "setup", tmp_path).command
    assert ("-m" in inner[2:]) == (left_out != "")
    assert not left_out or inner[-1] == f"not {marks}"

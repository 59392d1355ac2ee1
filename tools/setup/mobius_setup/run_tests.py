# SPDX-License-Identifier: BSD-3-Clause
"""`./mobius test`: builds, runs every suite, sums up.

A suite that fails, does not build or hangs stops none of the others. The last line is
"N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from mobius_setup.results import Verdict
from mobius_setup.start_up import with_short_start
from mobius_setup.suites import Outcome, Suite, run_suite, run_suites

# The labels of tests in sanitizer builds: with the first, compiled tests that run our code, not
# those that look at it; with the second, those in which one process has several threads.
SANITIZERS = {"asan-ubsan": "^(unit|multi)$", "tsan": "^(threads|unit)$"}
# Started in this order, the longest first, some at once: most of what they do is waiting.
PYTHON_SUITES = ("hosts", "instrument", "fronts", "launch", "faults", "setup", "apps")
AT_ONCE = 4
# Which of them start many processes on virtual hosts, and make no hosts of their own.
ON_VIRTUAL_HOSTS = frozenset({"faults", "launch"})
# A hung test's end; ctest uses it where tests/CMakeLists.txt says nothing.
CASE_LIMIT_S = 300
SHOWN_LINES = 60
SHOWN_SLOWEST = 10


@dataclass(frozen=True)
class Selection:
    """What the command line asked for."""

    root: Path
    quick: bool
    full: bool
    sanitize: bool
    presets: list[str]
    pattern: str | None


def main(arguments: list[str]) -> int:
    """Runs the tests that `arguments` select; returns the exit code."""
    selection = _parse(arguments)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    with tempfile.TemporaryDirectory(prefix="test-", dir=selection.root / ".mobius") as scratch:
        outcomes = _run_all(selection, Path(scratch))
    return _summarise(outcomes)


def _stop(number: int, _: FrameType | None) -> None:
    """Exits through every `finally`, which ends the running suite with all its processes."""
    print(f"\nended by {signal.Signals(number).name} before all tests ran", flush=True)
    sys.exit(128 + number)


def _parse(arguments: list[str]) -> Selection:
    parser = argparse.ArgumentParser(prog="./mobius test", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="no slow tests")
    parser.add_argument("--full", action="store_true", help="also modes that take long")
    parser.add_argument("--sanitize", action="store_true", help="also the sanitizer builds' tests")
    parser.add_argument("--preset", action="append", default=[], help="compiled tests of these")
    parser.add_argument("-k", dest="pattern", help="only tests whose name matches")
    parsed = parser.parse_args(arguments)
    return Selection(
        parsed.root, parsed.quick, parsed.full, parsed.sanitize, parsed.preset, parsed.pattern
    )


def _run_all(selection: Selection, scratch: Path) -> list[Outcome]:
    outcomes: list[Outcome] = []

    def run(suite: Suite) -> bool:
        print(f"{suite.name:<28} ", end="", flush=True)
        outcome = run_suite(suite, selection.root)
        outcomes.append(outcome)
        print(_in_words(outcome), flush=True)
        return outcome.count(Verdict.FAILED) == 0

    # The sanitizer builds take longer than everything else, so they run only on request.
    presets = selection.presets or ["release", *(SANITIZERS if selection.sanitize else [])]
    for preset in presets:
        if run(_build(selection, preset)):
            run(_ctest(selection, preset, scratch))
    if not selection.presets:
        suites = [_pytest(selection, name, scratch) for name in PYTHON_SUITES]
        for outcome in run_suites(suites, selection.root, AT_ONCE):
            outcomes.append(outcome)
            print(f"{outcome.suite.name:<28} {_in_words(outcome)}", flush=True)
    return outcomes


def _log(selection: Selection, name: str) -> Path:
    return selection.root / ".mobius" / "logs" / f"test-{name}.log"


def _build(selection: Selection, preset: str) -> Suite:
    return Suite(
        name=f"build {preset}",
        command=[str(selection.root / "mobius"), "build", "--preset", preset],
        log=_log(selection, f"build-{preset}"),
    )


def _left_out(selection: Selection) -> list[str]:
    """The labels of ctest, and marks of pytest, whose tests do not run."""
    return (["slow"] if selection.quick else []) + ([] if selection.full else ["full"])


def _ctest(selection: Selection, preset: str, scratch: Path) -> Suite:
    junit = scratch / f"ctest-{preset}.xml"
    command = ["ctest", "--test-dir", str(selection.root / "build" / preset)]
    command += ["--output-on-failure", "--output-junit", str(junit)]
    command += [f"--no-tests={'ignore' if selection.pattern else 'error'}"]
    command += ["--timeout", str(CASE_LIMIT_S)]
    command += ["--parallel", str(os.cpu_count() or 1)]
    if preset in SANITIZERS and not selection.presets:
        command += ["--label-regex", SANITIZERS[preset]]
    if left_out := _left_out(selection):
        command += ["--label-exclude", f"^({'|'.join(left_out)})$"]
    if selection.pattern:
        command += ["--tests-regex", selection.pattern]
    command = with_short_start(command)
    return Suite(f"ctest {preset}", command, _log(selection, f"ctest-{preset}"), junit)


def _pytest(selection: Selection, name: str, scratch: Path) -> Suite:
    junit = scratch / f"pytest-{name}.xml"
    command = [sys.executable, "-m", "pytest", f"tests/{name}", "--junit-xml", str(junit)]
    if left_out := _left_out(selection):
        command += ["-m", " and ".join(f"not {mark}" for mark in left_out)]
    if selection.pattern:
        command += ["-k", selection.pattern]
    if name in ON_VIRTUAL_HOSTS:
        command = with_short_start(command)
    return Suite(
        name=f"pytest {name}",
        command=command,
        log=_log(selection, f"pytest-{name}"),
        junit=junit,
        empty_codes=frozenset({5}) if selection.pattern or selection.quick else frozenset(),
    )


def _in_words(outcome: Outcome) -> str:
    counts = [(outcome.count(verdict), verdict.value) for verdict in Verdict]
    text = ", ".join(f"{count} {word}" for count, word in counts if count)
    if not text:
        text = "no test selected" if outcome.suite.junit else "done"
    return f"{text} ({outcome.seconds:.1f} s)"


def _show_slowest(outcomes: list[Outcome]) -> None:
    """Whoever adds a test sees what it costs; CONTRIBUTING.md says what a test may cost."""
    timed = [(case.seconds, o.suite.name, case.name) for o in outcomes for case in o.cases]
    slowest = sorted((each for each in timed if each[0] > 0), reverse=True)[:SHOWN_SLOWEST]
    if slowest:
        print("\nThe slowest tests:")
    for seconds, suite, name in slowest:
        print(f"  {seconds:6.1f} s  {suite}: {name}")


def _summarise(outcomes: list[Outcome]) -> int:
    cases = [(outcome.suite, case) for outcome in outcomes for case in outcome.cases]
    _show_slowest(outcomes)
    skipped = [(suite, case) for suite, case in cases if case.verdict is Verdict.SKIPPED]
    failed = [(suite, case) for suite, case in cases if case.verdict is Verdict.FAILED]
    if skipped:
        print("\nSkipped:")
    for suite, case in skipped:
        print(f"  {suite.name}: {case.name}: {case.detail}")
    for suite, case in failed:
        print(f"\nFailed: {suite.name}: {case.name} (all output: '{suite.log}')")
        lines = case.detail.splitlines()
        if len(lines) > SHOWN_LINES:
            print(f"  … {len(lines) - SHOWN_LINES} lines before these")
        for line in lines[-SHOWN_LINES:]:
            print(f"  {line}")
    if not cases or len(cases) == len(skipped):
        print("\nNo test ran.")
    print()
    passed = len(cases) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped", flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

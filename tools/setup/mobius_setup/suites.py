# SPDX-License-Identifier: BSD-3-Clause
"""Test suites: one command each, whose result is a list of cases whatever happens to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from mobius_setup.results import Case, UnreadableResultsError, Verdict, read_junit


@dataclass(frozen=True)
class Suite:
    """A command that runs tests and, unless it is a build, records them in `junit`.

    `empty_codes` are exit codes that mean "no test matched", which is no failure of the suite.
    """

    name: str
    command: list[str]
    log: Path
    junit: Path | None = None
    limit_s: float = 1800.0
    empty_codes: frozenset[int] = frozenset()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a suite gave."""

    suite: Suite
    cases: list[Case]
    seconds: float

    def count(self, verdict: Verdict) -> int:
        """How many cases ended so."""
        return sum(case.verdict is verdict for case in self.cases)


def run_suite(suite: Suite, root: Path) -> Outcome:
    """Runs a suite to its end or its limit; never raises for what the suite does."""
    begin = time.monotonic()
    problem = _run(suite, root)
    cases: list[Case] = []
    if suite.junit is not None:
        try:
            cases = read_junit(suite.junit)
        except UnreadableResultsError as error:
            problem = problem or str(error)
    failed = any(case.verdict is Verdict.FAILED for case in cases)
    if problem and not failed:
        cases.append(Case(suite.name, Verdict.FAILED, f"{problem}\n{_tail(suite.log)}"))
    return Outcome(suite, cases, time.monotonic() - begin)


def _run(suite: Suite, root: Path) -> str:
    """Runs the command; an empty text, or what went wrong with it as a whole."""
    environment = {**os.environ, **suite.environment}
    with suite.log.open("wb") as log:
        try:
            process = subprocess.Popen(
                suite.command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"'{suite.command[0]}' cannot be started: {error.strerror}"
        try:
            code = process.wait(timeout=suite.limit_s)
        except subprocess.TimeoutExpired:
            return f"still running after {suite.limit_s:.0f} s, ended"
        finally:
            # Also what a suite left behind, and all of it when we are interrupted ourselves.
            _end_group(process)
    if code == 0 or code in suite.empty_codes:
        return ""
    return f"'{' '.join(suite.command)}' exited with {code}"


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _tail(path: Path, lines: int = 80) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    return "\n".join([f"end of '{path}':", *text.splitlines()[-lines:]])

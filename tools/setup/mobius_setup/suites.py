# SPDX-License-Identifier: BSD-3-Clause
"""Test suites: each is a command whose result is always a list of cases, even if it crashes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mobius_setup.results import Case, UnreadableResultsError, Verdict, read_junit

# Interval of polling the running suites.
LOOK_S = 0.05


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
    """The result of a suite."""

    suite: Suite
    cases: list[Case]
    seconds: float

    def count(self, verdict: Verdict) -> int:
        """The number of cases with this verdict."""
        return sum(case.verdict is verdict for case in self.cases)


def run_suite(suite: Suite, root: Path) -> Outcome:
    """Runs a suite to its end or its limit; never raises for a failure of the suite."""
    return next(run_suites([suite], root, 1))


def run_suites(suites: Iterable[Suite], root: Path, at_once: int) -> Iterator[Outcome]:
    """Runs suites in order, up to `at_once` at a time; yields each outcome when it is there."""
    waiting = list(suites)
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_Running(waiting.pop(0), root))
            ended = [each for each in running if each.has_ended()]
            for each in ended:
                running.remove(each)
                yield each.outcome()
            if not ended:
                time.sleep(LOOK_S)
    finally:
        # Suites still run here only if we are interrupted ourselves.
        for each in running:
            each.end()


class _Running:
    """A running suite."""

    def __init__(self, suite: Suite, root: Path) -> None:
        self._suite = suite
        self._begin = time.monotonic()
        self._problem = ""
        self._process: subprocess.Popen[bytes] | None = None
        with suite.log.open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    suite.command,
                    cwd=root,
                    env={**os.environ, **suite.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                self._problem = f"'{suite.command[0]}' cannot be started: {error.strerror}"

    def has_ended(self) -> bool:
        """Whether the suite has ended, by itself or at its limit."""
        if self._process is None:
            return True
        code = self._process.poll()
        if code is None:
            if time.monotonic() - self._begin < self._suite.limit_s:
                return False
            self._problem = f"still running after {self._suite.limit_s:.0f} s, ended"
        elif code != 0 and code not in self._suite.empty_codes:
            self._problem = f"'{' '.join(self._suite.command)}' exited with {code}"
        self.end()
        return True

    def end(self) -> None:
        """Ends the suite's process group, with all processes that it left behind."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def outcome(self) -> Outcome:
        """The result, after the suite has ended."""
        suite, problem = self._suite, self._problem
        cases: list[Case] = []
        if suite.junit is not None:
            try:
                cases = read_junit(suite.junit)
            except UnreadableResultsError as error:
                problem = problem or str(error)
        failed = any(case.verdict is Verdict.FAILED for case in cases)
        if problem and not failed:
            cases.append(Case(suite.name, Verdict.FAILED, f"{problem}\n{_tail(suite.log)}"))
        return Outcome(suite, cases, time.monotonic() - self._begin)


def _tail(path: Path, lines: int = 80) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    return "\n".join([f"end of '{path}':", *text.splitlines()[-lines:]])

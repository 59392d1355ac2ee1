# SPDX-License-Identifier: BSD-3-Clause
"""Test cases as ctest and pytest record them in JUnit XML."""

from __future__ import annotations

import enum
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from pathlib import Path


class Verdict(enum.Enum):
    """The result of one test case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Case:
    """One test case; `detail` is the reason of a skip or the output of a failure."""

    name: str
    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0


class UnreadableResultsError(Exception):
    """The file is absent, empty or not JUnit XML: the tool that should write it has died."""


def read_junit(path: Path) -> list[Case]:
    """All test cases of a JUnit file of ctest or pytest."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise UnreadableResultsError(f"no readable results in '{path}': {error}") from error
    return [_case(element) for element in root.iter("testcase")]


def _case(element: ElementTree.Element) -> Case:
    return replace(_without_time(element), seconds=float(element.get("time", "0")))


def _without_time(element: ElementTree.Element) -> Case:
    name = element.get("name", "?")
    module = element.get("classname", "")
    if module and module != name:
        name = f"{module}::{name}"
    output = (element.findtext("system-out") or "").strip()
    for tag in ("failure", "error"):
        failure = element.find(tag)
        if failure is not None:
            text = (failure.text or "").strip() or failure.get("message", "")
            detail = "\n".join(part for part in (text, output) if part)
            return Case(
                name, Verdict.FAILED, detail or "no output: ended by a signal or a time limit"
            )
    if element.get("status") == "disabled":
        return Case(name, Verdict.SKIPPED, "disabled")
    skipped = element.find("skipped")
    if skipped is not None:
        return _not_run(name, skipped.get("message", ""), output, element.get("status", ""))
    return Case(name, Verdict.PASSED)


def _not_run(name: str, message: str, output: str, status: str) -> Case:
    """A case that is marked as skipped.

    ctest marks a test that it could not start in the same way (status "notrun", and no message of
    the test): such a test has failed.
    """
    if status != "notrun":
        return Case(name, Verdict.SKIPPED, message)
    if message.startswith("SKIP_"):
        return Case(name, Verdict.SKIPPED, _skip_reason(output))
    return Case(name, Verdict.FAILED, f"not run: {output or message or 'no reason given'}")


def _skip_reason(output: str) -> str:
    """The line with a program's reason to skip: one that starts with SKIP, or the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("SKIP")]
    # GoogleTest's own lines start with a bracket; the reason is between them.
    plain = [line for line in lines if not line.startswith("[")]
    return (said or plain or ["no reason given"])[-1]

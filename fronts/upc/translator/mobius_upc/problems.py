# SPDX-License-Identifier: BSD-3-Clause
"""Errors and warnings of a translation, at lines of the source."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Place:
    """A line of a file of the program."""

    file: str
    line: int


@dataclass(frozen=True)
class Problem:
    """What is wrong, where, and how to write it right."""

    place: Place
    message: str
    severity: str = "error"

    def __str__(self) -> str:
        """The line that a compiler would print."""
        return f"{self.place.file}:{self.place.line}: {self.severity}: {self.message}"


class TranslationError(Exception):
    """Ends a translation; `problems` says why, in the order of the source."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass
class Problems:
    """Collects problems, each once."""

    found: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem) -> None:
        """Notes a problem unless the same was noted before."""
        if problem not in self.found:
            self.found.append(problem)

    def errors(self) -> list[Problem]:
        """The problems that prevent a translation."""
        return [problem for problem in self.found if problem.severity == "error"]

    def raise_errors(self) -> None:
        """Raises TranslationError if there is an error."""
        if self.errors():
            raise TranslationError(self.found)

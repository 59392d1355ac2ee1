# SPDX-License-Identifier: BSD-3-Clause
"""The three parts in a row."""

from __future__ import annotations

from .frontend import parse
from .layout import LayoutTable
from .lower import lower
from .printer import print_text
from .problems import Problems
from .rewrite import rewrite


def translate(
    preprocessed: str, file: str, threads: int | None, *, checks: bool = False
) -> tuple[str, Problems]:
    """C text for preprocessed UPC, and warnings; errors raise TranslationError.

    `checks`: accesses, indices and casts are checked when the program runs.
    """
    layouts, problems = LayoutTable(), Problems()
    source = rewrite(preprocessed, layouts, problems, threads)
    problems.raise_errors()
    unit = parse(source, layouts, problems, threads)
    unit.checks = checks
    return print_text(lower(unit, file), source, file), problems

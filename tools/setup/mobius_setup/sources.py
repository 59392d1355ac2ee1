# SPDX-License-Identifier: BSD-3-Clause
"""Checks of our own on source files: length, licence line, and what components may take."""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST_LINES = 800
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
# A licence line may follow a #! line and a note to a checker.
LICENCE_WITHIN = 5
# Components take the components and interfaces that they need (ARCHITECTURE.md): only the files
# directly in src/engine put them together.
COMPONENTS = re.compile(r"src/engine/\w+/")
WHOLE_ENGINE = re.compile(r"\bEngine\s*[&*]|\bclass Engine;|\"engine/engine\.h\"")


def problems(path: Path) -> list[str]:
    """What is wrong with one source file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        return [f"{path}: not UTF-8: {error}"]
    found = []
    if len(lines) > MOST_LINES:
        found.append(
            f"{path}: {len(lines)} lines; past {MOST_LINES} a file holds two ideas: split it"
        )
    if lines and not any(LICENCE in line for line in lines[:LICENCE_WITHIN]):
        found.append(f"{path}: no '{LICENCE}' in its first {LICENCE_WITHIN} lines: add it")
    if COMPONENTS.search(path.as_posix()):
        found += [
            f"{path}:{number}: a component must not know the Engine: take what it needs of it"
            for number, line in enumerate(lines, 1)
            if WHOLE_ENGINE.search(line)
        ]
    return found


def main(paths: list[str]) -> int:
    """Prints every problem of the files; the exit code."""
    found = [problem for path in paths for problem in problems(Path(path))]
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: BSD-3-Clause
"""Every pattern of a --gtest_filter in ctest's tests names at least one test.

A suite that is renamed would otherwise silently leave the modes that run it by name.

Usage: check_filters.py CTEST BUILD_FOLDER
"""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

OPTION = "--gtest_filter="


def filters_of(ctest: str, build: Path) -> dict[str, dict[str, set[str]]]:
    """For each program the patterns of its filters, with the names of the tests that use them."""
    shown = subprocess.run(
        [ctest, "--test-dir", str(build), "--show-only=json-v1"],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for test in json.loads(shown.stdout)["tests"]:
        words = " ".join(test.get("command", [])).replace('"', " ").split()
        programs = [word for word in words if word.endswith("_tests") and Path(word).is_file()]
        for word in words:
            if not word.startswith(OPTION) or not programs:
                continue
            for pattern in word.removeprefix(OPTION).replace("-", ":").split(":"):
                found[programs[0]][pattern].add(test["name"])
    return found


def tests_of(program: str) -> list[str]:
    """The full names of a program's tests."""
    listed = subprocess.run(
        [program, "--gtest_list_tests"], check=True, capture_output=True, text=True
    )
    names: list[str] = []
    suite = ""
    for line in listed.stdout.splitlines():
        name = line.partition("#")[0].rstrip()
        if name.startswith(" "):
            names.append(suite + name.strip())
        else:
            suite = name
    return names


def main() -> int:
    """Prints each pattern that matches nothing; returns the exit code."""
    filters = filters_of(sys.argv[1], Path(sys.argv[2]))
    wrong = 0
    for program, patterns in filters.items():
        names = tests_of(program)
        for pattern, users in sorted(patterns.items()):
            if pattern and not any(fnmatch.fnmatchcase(name, pattern) for name in names):
                print(f"{program}: no test is called '{pattern}' ({', '.join(sorted(users))})")
                wrong += 1
    print(f"{sum(len(patterns) for patterns in filters.values())} patterns, {wrong} match nothing")
    return 1 if wrong or not filters else 0


if __name__ == "__main__":
    sys.exit(main())

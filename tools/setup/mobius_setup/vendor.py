# SPDX-License-Identifier: BSD-3-Clause
"""Copies the instrument's libraries from this environment into an installed tree.

Copied, not installed again: the same versions that were tested, and no network. What is copied
works with one minor version of Python on one kind of machine only; PYTHON in the target names it
for the script that starts the instrument.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.metadata
import py_compile
import shutil
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(requirements: list[str]) -> list[importlib.metadata.Distribution]:
    """The distributions of this environment that satisfy `requirements`, with all they need."""
    found: dict[str, importlib.metadata.Distribution] = {}
    queue = [(Requirement(line), "") for line in requirements]
    seen: set[tuple[str, str]] = set()
    while queue:
        requirement, extra = queue.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        distribution = importlib.metadata.distribution(name)
        found[name] = distribution
        for wanted_extra in ("", *requirement.extras):
            if (name, wanted_extra) not in seen:
                seen.add((name, wanted_extra))
                queue += [(Requirement(r), wanted_extra) for r in distribution.requires or []]
    return [found[name] for name in sorted(found)]


def copy_distribution(distribution: importlib.metadata.Distribution, target: Path) -> None:
    """Copies what belongs to it, except commands (outside site-packages) and compiled files.

    Nor its own tests, a sixth of everything; numpy imports a part of them.
    """
    for path in distribution.files or []:
        if path.is_absolute() or ".." in path.parts or path.suffix == ".pyc":
            continue
        if "tests" in path.parts and path.parts[0] != "numpy":
            continue
        destination = target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(str(path.locate()), destination)


def main(arguments: list[str]) -> int:
    """Fills the target anew; the exit code."""
    parser = argparse.ArgumentParser(prog="vendor")
    parser.add_argument("--requirements", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parsed = parser.parse_args(arguments)
    target: Path = parsed.target
    lines = parsed.requirements.read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line.strip() and not line.startswith("#")]

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for distribution in needed(wanted):
        print(f"{distribution.metadata['Name']} {distribution.version}")
        copy_distribution(distribution, target)
    # The tree may be read-only later, and moved: compiled now, with paths relative to it, and not
    # compared with the sources' dates, which copying changes.
    compileall.compile_dir(
        target,
        quiet=2,
        stripdir=target,
        workers=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (target / "PYTHON").write_text(f"{version}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: BSD-3-Clause
"""`./mobius lint --fix`: applies formats and corrections that are safe to apply."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

C_SUFFIXES = (".c", ".h", ".cpp", ".hpp", ".inc")


def main(arguments: list[str]) -> int:
    """Rewrites unformatted files; returns the first exit code that is not 0."""
    parser = argparse.ArgumentParser(prog="format")
    parser.add_argument("--root", type=Path, required=True)
    root: Path = parser.parse_args(arguments).root
    listing = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    files = [name for name in listing.stdout.split("\0") if name and (root / name).is_file()]
    c_files = [name for name in files if name.endswith(C_SUFFIXES)]
    python_files = [name for name in files if name.endswith((".py", ".pyi"))]
    commands = []
    if c_files:
        commands.append(["clang-format", "-i", *c_files])
    if python_files:
        commands.append(["ruff", "check", "--fix", "--exit-zero", "--quiet", *python_files])
        commands.append(["ruff", "format", "--quiet", *python_files])
    codes = [subprocess.run(command, cwd=root).returncode for command in commands]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

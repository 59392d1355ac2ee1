# SPDX-License-Identifier: BSD-3-Clause
"""The library exports what its headers declare, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def declared(compiler: str, folders: list[str]) -> set[str]:
    folder = Path(folders[0].removeprefix("-I"))
    headers = [header.relative_to(folder) for header in sorted(folder.rglob("*.h"))]
    text = subprocess.run(
        [compiler, "-std=c11", *folders, "-E", "-P", "-"],
        input="".join(f"#include <{header}>\n" for header in headers),
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    exports = re.findall(r'visibility\("default"\)\)\)([^;{]*);', text)
    functions = [
        name[1]
        for each in exports
        if (name := re.search(r"\b(\w+)\(", each.replace("__attribute__((", "")))
    ]
    return {name for name in functions if re.match("(mob_upc|upc|bupc)_", name)} | {"main"}


def exported(library: str) -> set[str]:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    functions = [line.split()[-1] for line in lines if line.split()[-2] in "TW"]
    return {name.split("@")[0] for name in functions}


def main() -> None:
    compiler, library, *folders = sys.argv[1:]
    in_headers, in_library = declared(compiler, folders), exported(library)
    assert len(in_headers) > 70, f"only {len(in_headers)} functions found"
    problems = [f"declared, not exported: {name}" for name in sorted(in_headers - in_library)]
    problems += [f"exported, not declared: {name}" for name in sorted(in_library - in_headers)]
    if problems:
        sys.exit("\n".join(problems))


main()

# SPDX-License-Identifier: BSD-3-Clause
"""The library exports what its headers declare: each function, and its twin where it has one."""

from __future__ import annotations

import re
import subprocess
import sys


def declared(compiler: str, includes: list[str]) -> set[str]:
    flags = [f"-I{folder}" for folder in includes]
    text = subprocess.run(
        [compiler, "-std=c99", "-DSHMEM_NO_INLINE", *flags, "-E", "-P", "-"],
        input="#include <pshmem.h>\n#include <shmemx.h>\n",
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return set(
        re.findall(r"\b(p?shmemx?_[a-z]\w*[a-z0-9]|start_pes|_?my_pe|_?num_pes|sh\w+) ?\(", text)
    )


def exported(library: str) -> set[str]:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines}
    # What the inlined calls use ends in an underscore; the version of the symbols is one, too.
    return {name for name in names if not name.endswith("_") and not name.startswith("MOBIUS_")}


def main() -> None:
    compiler, library, *includes = sys.argv[1:]
    in_headers, in_library = declared(compiler, includes), exported(library)
    assert len(in_headers) > 3000, f"only {len(in_headers)} functions found"
    problems = [f"declared, not exported: {name}" for name in sorted(in_headers - in_library)]
    problems += [f"exported, not declared: {name}" for name in sorted(in_library - in_headers)]
    problems += [
        f"without a twin: {name}"
        for name in sorted(in_headers)
        if name.startswith("shmem_") and f"p{name}" not in in_headers
    ]
    if problems:
        sys.exit("\n".join(problems))


main()

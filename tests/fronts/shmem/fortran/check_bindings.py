# SPDX-License-Identifier: BSD-3-Clause
"""The library exports the routines of the module `shmem`, and the constants are those of shmem.h.

check_bindings.py COMPILER LIBRARY MODULE HEADERS…"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def exported(library: str) -> set[str]:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def main() -> None:
    compiler, library, module, *headers = sys.argv[1:]
    # A continuation ends at column 73.
    text = re.sub(r" *&\n *& ", " ", Path(module).read_text("utf-8"))
    bound = set(re.findall(r"bind\(c, name='(\w+)'\)", text)) | {"shmem_info_get_name_"}
    assert len(bound) > 200, f"only {len(bound)} routines found"
    in_headers = "".join(
        path.read_text("utf-8") for folder in headers for path in Path(folder).rglob("*.h")
    )
    # Names that end in an underscore are either Fortran's or those of functions that shmem.h calls.
    of_fortran = {
        name for name in exported(library) if name.endswith("_") and name not in in_headers
    }
    problems = [
        f"in the module, not exported: {name}" for name in sorted(bound - exported(library))
    ]
    problems += [f"exported, not in the module: {name}" for name in sorted(of_fortran - bound)]
    if problems:
        sys.exit("\n".join(problems))

    constants = re.findall(r"parameter \((\w+) = (\d+)\)", text)
    assert len(constants) > 20
    checks = []
    for name, value in constants:
        if name.endswith("sync_size"):
            # Elements of 4 bytes, the first of which may be passed over for alignment.
            checks.append(f"4 * {value} - 4 >= {name.upper()} * sizeof(long)")
        else:
            checks.append(f"{name.upper()} == {value}")
    lines = [f'_Static_assert({check}, "{check}");' for check in checks]
    subprocess.run(
        [compiler, "-std=c11", "-fsyntax-only", *(f"-I{folder}" for folder in headers),
         "-x", "c", "-"],
        input="\n".join(["#include <shmem.h>", *lines]), text=True, check=True,
    )  # fmt: skip


main()

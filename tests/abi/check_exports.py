# SPDX-License-Identifier: BSD-3-Clause
"""Compares the symbols that libmobius exports with the functions that its headers declare."""

import re
import subprocess
import sys
from pathlib import Path

INTERNAL = {"MOBIUS_0"}  # the version node itself


def exported(library: str) -> set[str]:
    """The names of the dynamic symbols that the library defines."""
    output = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", library],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {line.split()[0].split("@")[0] for line in output.splitlines() if line.strip()}


def declared(include: Path) -> set[str]:
    """The names that the public headers declare as part of the library."""
    names: set[str] = set()
    for header in sorted(include.rglob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        names.update(re.findall(r"^MOB_(?:API|INLINE)\b[^;{]*?\b(mob_\w+)\(", text, re.MULTILINE))
        names.update(
            re.findall(r"^extern MOB_API [^;]*?\b(mob_\w+)(?:\[[^;]*)?;", text, re.MULTILINE)
        )
    return names


def main() -> int:
    """Prints every difference; returns 0 if there is none."""
    library, include = sys.argv[1], Path(sys.argv[2])
    in_library = exported(library) - INTERNAL
    in_headers = declared(include)
    if len(in_headers) < 20 or not in_library:
        print(f"found only {len(in_headers)} declarations and {len(in_library)} symbols")
        return 1
    for name in sorted(in_library - in_headers):
        print(f"exported but not declared in a public header: {name}")
    for name in sorted(in_headers - in_library):
        print(f"declared but not exported: {name}")
    for name in sorted(name for name in in_library if not name.startswith("mob_")):
        print(f"exported without the prefix mob_: {name}")
    return 0 if in_library == in_headers else 1


if __name__ == "__main__":
    sys.exit(main())

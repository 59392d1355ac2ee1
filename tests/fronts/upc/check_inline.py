# SPDX-License-Identifier: BSD-3-Clause
"""Checks the machine code of accesses to shared memory.

The path of an access to a thread of this host runs from the function's start to its first return
without a call, with the one conditional branch that finds the thread on another host. No arithmetic
divides.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "codegen"))
from disassembly import disassembly_of

SKIP = 77
# name: (conditional branches, most instructions) up to the first return
ACCESSES = {
    "get_int": (1, 11),
    "put_int": (1, 10),
    "get_double": (1, 11),
    "put_double": (1, 10),
    "get_long": (1, 11),
    "get_char": (1, 11),
    "get_shared": (1, 14),
    "local": (0, 4),
    "to_private": (2, 11),
    "add_indefinite": (0, 8),
}
PADDING = ("nop", "nopw", "nopl", "cs", "data16", "xchg", "endbr64")


def functions_of(text: str) -> dict[str, list[str]]:
    functions: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if header := re.match(r"[0-9a-f]+ <check_(\w+)>:", line):
            current = functions.setdefault(header[1], [])
        elif (found := re.match(r"\s+[0-9a-f]+:\s+(\S+)", line)) and found[1] not in PADDING:
            current.append(found[1])
    return functions


def hot_path(code: list[str]) -> list[str]:
    end = next((i for i, name in enumerate(code) if name in ("ret", "retq", "jmp")), len(code) - 1)
    return code[: end + 1]


def main() -> int:
    compiler, include, source = sys.argv[1:]
    for needed in (compiler, "objdump"):
        if shutil.which(needed) is None:
            print(f"SKIP: {needed} is not installed")
            return SKIP
    functions = functions_of(disassembly_of(compiler, "c99", include, source))
    failures = 0
    for name, (branches, most) in ACCESSES.items():
        path = hot_path(functions[name])
        conditional = sum(each.startswith("j") and each != "jmp" for each in path)
        calls = sum(each.startswith("call") for each in path)
        ok = path[-1].startswith("ret") and calls == 0 and conditional <= branches
        ok = ok and len(path) <= most
        failures += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name}: {len(path)} instructions: {' '.join(path)}")
    for name, code in functions.items():
        if any("div" in each for each in code):
            failures += 1
            print(f"FAILED {name} divides: {' '.join(code)}")
    return 1 if failures else 0


sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the C++ calls compile to the instructions of the C calls that they stand for."""

import re
import shutil
import sys

from disassembly import disassembly_of

SKIP = 77
PADDING = r"nop|data16|cs |xchg +%ax,%ax"


def disassemble(compiler: str, include: str, source: str) -> dict[str, list[str]]:
    """The instructions of each function, in order: mnemonics, and symbols that they refer to."""
    text = disassembly_of(compiler, "c++20", include, source, "--reloc")
    functions: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if header := re.match(r"[0-9a-f]+ <(\w+)(?:\.cold)?>:", line):
            current = functions.setdefault(header[1], [])
        elif symbol := re.match(r"\s+[0-9a-f]+: R_\w+\s+([\w.]+)", line):
            current.append(symbol[1])
        elif instruction := re.match(rf"\s+[0-9a-f]+:\s+(?!{PADDING})(\S+)", line):
            current.append(instruction[1])
    return functions


def main() -> int:
    """Prints every pair that differs; returns 0 if there is none."""
    compiler, include, source = sys.argv[1:]
    if shutil.which(compiler) is None or shutil.which("objdump") is None:
        print(f"SKIP: no {compiler}, or no objdump")
        return SKIP
    functions = disassemble(compiler, include, source)
    names = sorted(name[2:] for name in functions if name.startswith("c_"))
    if len(names) < 10:
        print(f"found only {len(names)} pairs")
        return 1
    failed = 0
    for name in names:
        in_c, in_cxx = functions[f"c_{name}"], functions[f"cxx_{name}"]
        if in_c != in_cxx:
            failed = 1
            print(f"{name}: in C {' '.join(in_c)}\n  in C++ {' '.join(in_cxx)}")
        else:
            print(f"{name}: the same {len(in_c)} instructions")
    return failed


if __name__ == "__main__":
    sys.exit(main())

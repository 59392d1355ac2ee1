# SPDX-License-Identifier: BSD-3-Clause
"""Checks the machine code of the inlined operations.

If the check of an operation holds, its path runs from the function's start to its first `ret`
without a call and with exactly one conditional branch, the check itself.
"""

import re
import shutil
import subprocess
import sys

from disassembly import disassembly_of

SKIP = 77
OPERATIONS = {
    # name: (conditional branches, most instructions) up to the first ret
    "put8": (1, 16),
    "put4": (1, 16),
    "put2": (1, 16),
    "put1": (1, 16),
    # Also checks that there is a place for the result.
    "get8": (2, 18),
    "get4": (2, 18),
    "get2": (2, 18),
    "get1": (2, 18),
    "flush": (1, 7),
    "flush_all": (1, 7),
    "fence": (1, 6),
    # Also checks that the word is aligned.
    "fetch_add8": (3, 29),
    "swap8": (3, 29),
    "compare_swap8": (3, 30),
}
# Clang 14 saves a register for the path that is not taken, and jumps to the end of the function.
MORE_BY_CLANG = {"fetch_add8": 2, "swap8": 2, "compare_swap8": 2}
# Calls that continue the former one: the inlined part completely, no instruction of it atomic, and
# a jump to the rest.
STARTED = ("put_nbi", "get_nbi")
STARTED_INSTRUCTIONS = 44
PADDING = ("nop", "nopw", "nopl", "cs", "data16", "xchg %ax,%ax")
# Per operation in a loop, including the loop's own three instructions and one branch: conditional
# branches, and most instructions by compiler. Clang adds two to a put: it keeps the tagged address
# as a second induction variable, and leaves the loop's condition at its top.
LOOPS = {
    "loop8": (2, {"gcc": 9, "clang": 11}),
    # The result goes to a local variable, so no instruction checks its place.
    "loop_get8": (2, {"gcc": 11}),
    "loop_add8": (3, {"gcc": 13}),
    "loop_compare_swap8": (3, {"gcc": 14}),
}


def disassemble(compiler: str, include: str, source: str) -> dict[str, list[tuple[int, str, str]]]:
    """The functions of the compiled source: (address, mnemonic, operands) of each instruction."""
    text = disassembly_of(compiler, "c99", include, source)
    functions: dict[str, list[tuple[int, str, str]]] = {}
    current: list[tuple[int, str, str]] = []
    for line in text.splitlines():
        if header := re.match(r"[0-9a-f]+ <check_(\w+)>:", line):
            current = functions.setdefault(header[1], [])
        elif instruction := re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*(.*)", line):
            current.append((int(instruction[1], 16), instruction[2], instruction[3]))
    return functions


def is_conditional(mnemonic: str) -> bool:
    """Tells whether a mnemonic is a conditional jump."""
    return mnemonic.startswith("j") and mnemonic != "jmp"


def hot_path(code: list[tuple[int, str, str]]) -> list[str]:
    """The mnemonics from the start to the first return, the predicted path.

    A jump to a common end of the function is followed, and counted.
    """
    place = {address: index for index, (address, _, _) in enumerate(code)}
    path: list[str] = []
    index = 0
    while index < len(code) and len(path) <= len(code):
        _, mnemonic, operands = code[index]
        path.append(mnemonic)
        if mnemonic in ("ret", "retq"):
            break
        index += 1
        if mnemonic == "jmp":
            target = re.match(r"([0-9a-f]+)", operands)
            if target is None or int(target[1], 16) not in place:
                break
            index = place[int(target[1], 16)]
    return path


def loop_body(code: list[tuple[int, str, str]]) -> list[str]:
    """The mnemonics of the innermost loop: the shortest range that a backward jump repeats."""
    best: list[str] = []
    for index, (address, mnemonic, operands) in enumerate(code):
        target = re.match(r"([0-9a-f]+)", operands) if mnemonic.startswith("j") else None
        if target is None or int(target[1], 16) >= address:
            continue
        start = next(i for i, line in enumerate(code) if line[0] == int(target[1], 16))
        body = [line[1] for line in code[start : index + 1]]
        if "call" not in body and (not best or len(body) < len(best)):
            best = body
    return [mnemonic for mnemonic in best if not mnemonic.startswith("nop")]


def main() -> int:
    """Prints the counts; returns 0 if every limit holds."""
    compiler, include, source = sys.argv[1:4]
    if shutil.which(compiler) is None:
        print(f"skipped: {compiler} is not installed")
        return SKIP
    if shutil.which("objdump") is None:
        print("skipped: objdump is not installed (package binutils)")
        return SKIP
    functions = disassemble(compiler, include, source)
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    family = "clang" if "clang" in version.stdout else "gcc"
    failures = 0
    for name, (branches, most) in OPERATIONS.items():
        path = hot_path(functions[name])
        conditional = sum(is_conditional(mnemonic) for mnemonic in path)
        calls = sum(mnemonic.startswith("call") for mnemonic in path)
        ok = path[-1].startswith("ret") and not calls and conditional == branches
        ok = ok and len(path) <= most + (MORE_BY_CLANG.get(name, 0) if family == "clang" else 0)
        failures += not ok
        print(
            f"{'ok    ' if ok else 'FAILED'} {name}: {len(path)} instructions, "
            f"{conditional} conditional, {calls} calls{'' if ok else ': ' + ' '.join(path)}"
        )
    for name in STARTED:
        body = [
            mnemonic
            for _, mnemonic, operands in functions[name]
            if mnemonic not in PADDING and f"{mnemonic} {operands}" not in PADDING
        ]
        ok = len(body) <= STARTED_INSTRUCTIONS
        ok = ok and not any(one.startswith(("call", "lock", "xchg", "mfence")) for one in body)
        failures += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name}: {len(body)} instructions: {' '.join(body)}")
    for name, (branches, most_by_family) in LOOPS.items():
        if family not in most_by_family:
            continue
        body = loop_body(functions[name])
        conditional = sum(is_conditional(mnemonic) for mnemonic in body)
        ok = 0 < len(body) <= most_by_family[family] and conditional == branches
        failures += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name}: {len(body)} instructions: {' '.join(body)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

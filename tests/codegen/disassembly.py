# SPDX-License-Identifier: BSD-3-Clause
"""The machine code that a compiler makes of a source file, as text."""

import subprocess
import tempfile
from pathlib import Path


def disassembly_of(compiler: str, standard: str, include: str, source: str, *options: str) -> str:
    """Compiles with optimisation and disassembles; `options` are further options of objdump."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "code.o"
        subprocess.run(
            [compiler, f"-std={standard}", "-O2", f"-I{include}", "-c", source, "-o", str(binary)],
            check=True,
        )
        return subprocess.run(
            ["objdump", "--disassemble", "--no-show-raw-insn", *options, str(binary)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

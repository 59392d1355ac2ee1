# SPDX-License-Identifier: BSD-3-Clause
"""clang-tidy over the files given, with the commands of build/dev: each compiled for itself.

A file that was found clean is not looked at again until it, a header of ours, its command, the
configuration or clang-tidy changes: clang-tidy takes seconds per file, a commit touches a few.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

COMMANDS = Path("build/dev/compile_commands.json")
CACHE = Path(".mobius/cache/tidy")
CLANG_TIDY = Path(".mobius/venv/bin/clang-tidy")
# Whatever a translation unit may include of ours.
HEADER_FOLDERS = ("include", "src", "tools", "bench", "tests")


def headers_digest() -> str:
    """One digest of all headers of ours: coarse, and never wrong."""
    digest = hashlib.sha256()
    for folder in HEADER_FOLDERS:
        for pattern in ("*.h", "*.hpp"):
            for path in sorted(Path(folder).rglob(pattern)):
                digest.update(str(path).encode() + b"\0" + path.read_bytes())
    digest.update(Path(".clang-tidy").read_bytes())
    version = subprocess.run([str(CLANG_TIDY), "--version"], stdout=subprocess.PIPE, check=True)
    digest.update(version.stdout)
    return digest.hexdigest()


def read_commands() -> dict[Path, str]:
    """The compile command of each translation unit of build/dev."""
    entries = json.loads(COMMANDS.read_text(encoding="utf-8"))
    return {
        Path(entry["directory"], entry["file"]).resolve(): entry["command"] for entry in entries
    }


def check(path: Path) -> tuple[int, str]:
    """Runs clang-tidy on one file: its exit code and what it found."""
    done = subprocess.run(
        [
            str(CLANG_TIDY), "--quiet", "--warnings-as-errors=*", "-p", str(COMMANDS.parent),
            # The commands are those of the compiler in use: it knows options that Clang does not.
            "--extra-arg=-Wno-ignored-optimization-argument", path,
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    # Standard error holds counts of suppressed warnings; it matters when nothing else was said.
    return done.returncode, done.stdout or done.stderr


def main(arguments: list[str]) -> int:
    """Checks those of the files that build/dev compiles; the exit code."""
    if not COMMANDS.is_file():
        print(f"no '{COMMANDS}': configure with ./mobius lint")
        return 1
    commands = read_commands()
    shared = headers_digest()
    marks: dict[Path, Path] = {}
    for argument in arguments:
        path = Path(argument)
        command = commands.get(path.resolve())
        if command is not None:
            key = hashlib.sha256(f"{shared}\0{command}\0".encode() + path.read_bytes()).hexdigest()
            marks[path] = CACHE / key
    CACHE.mkdir(parents=True, exist_ok=True)
    waiting = [path for path, mark in marks.items() if not mark.exists()]
    status = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (code, text) in zip(waiting, pool.map(check, waiting), strict=True):
            if code == 0:
                marks[path].touch()
            else:
                print(f"{path}:\n{text}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

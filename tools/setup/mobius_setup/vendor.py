# SPDX-License-Identifier: BSD-3-Clause
"""Copies the instrument's libraries from this environment into an installed tree.

Copied, not installed again: the same versions that were tested, and no network. The copy
works with one minor version of Python on one kind of machine only; PYTHON in the target names it
for the script that starts the instrument.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import marshal
import shutil
import sys
from pathlib import Path
from types import CodeType
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# The head of a compiled file (PEP 552): magic number, flags, then eight bytes about its source.
_HEAD_BYTES: Final = 16
_UNCHECKED_HASH: Final = 0b01


def needed(requirements: list[str]) -> list[importlib.metadata.Distribution]:
    """The distributions of this environment that satisfy `requirements`, and their dependencies."""
    found: dict[str, importlib.metadata.Distribution] = {}
    queue = [(Requirement(line), "") for line in requirements]
    seen: set[tuple[str, str]] = set()
    while queue:
        requirement, extra = queue.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        distribution = importlib.metadata.distribution(name)
        found[name] = distribution
        for wanted_extra in ("", *requirement.extras):
            if (name, wanted_extra) not in seen:
                seen.add((name, wanted_extra))
                queue += [(Requirement(r), wanted_extra) for r in distribution.requires or []]
    return [found[name] for name in sorted(found)]


def copy_distribution(distribution: importlib.metadata.Distribution, target: Path) -> None:
    """Copies what belongs to it, except commands (outside site-packages), and compiles it.

    Nor its own tests, a sixth of everything; numpy imports a part of them.
    """
    for path in distribution.files or []:
        if path.is_absolute() or ".." in path.parts or path.suffix == ".pyc":
            continue
        if "tests" in path.parts and path.parts[0] != "numpy":
            continue
        source, destination = Path(str(path.locate())), target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, destination)
        if path.suffix == ".py":
            _write_compiled(source, destination, str(path))


def _write_compiled(source: Path, destination: Path, name: str) -> None:
    """The tree may be read-only later, and moved: compiled now, as of a path relative to it, and
    not compared with the source's date, which copying changes."""
    text = source.read_bytes()
    code = _compiled_here(source)
    if code is None:
        try:
            code = compile(text, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # For another version of Python; nobody imports it.
            return
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little")
    compiled = Path(importlib.util.cache_from_source(str(destination), optimization=""))
    compiled.parent.mkdir(exist_ok=True)
    compiled.write_bytes(
        head + importlib.util.source_hash(text) + marshal.dumps(_as_of(code, name))
    )


def _compiled_here(source: Path) -> CodeType | None:
    """What this environment has compiled of it, if that is of this Python and the source of now:
    pip did that once, and compiling all again was most of an installation's time."""
    with contextlib.suppress(OSError, EOFError, ValueError, TypeError):
        cached = importlib.util.cache_from_source(str(source), optimization="")
        content = Path(cached).read_bytes()
        about = source.stat()
        # As import does: without flags, the low halves of date and size.
        words = (0, int(about.st_mtime), about.st_size)
        head = [(word & 0xFFFFFFFF).to_bytes(4, "little") for word in words]
        if content[:_HEAD_BYTES] == importlib.util.MAGIC_NUMBER + b"".join(head):
            code = marshal.loads(content[_HEAD_BYTES:])
            return code if isinstance(code, CodeType) else None
    return None


def _as_of(code: CodeType, name: str) -> CodeType:
    """The same code object with another file name."""
    constants = tuple(
        _as_of(one, name) if isinstance(one, CodeType) else one for one in code.co_consts
    )
    return code.replace(co_filename=name, co_consts=constants)


def main(arguments: list[str]) -> int:
    """Fills the target folder anew; returns the exit code."""
    parser = argparse.ArgumentParser(prog="vendor")
    parser.add_argument("--requirements", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parsed = parser.parse_args(arguments)
    target: Path = parsed.target
    lines = parsed.requirements.read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line.strip() and not line.startswith("#")]

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for distribution in needed(wanted):
        print(f"{distribution.metadata['Name']} {distribution.version}")
        copy_distribution(distribution, target)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (target / "PYTHON").write_text(f"{version}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

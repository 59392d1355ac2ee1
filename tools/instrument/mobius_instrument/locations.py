# SPDX-License-Identifier: BSD-3-Clause
"""Where Möbius, the test-suite and the caches are, in a checkout and in an installed tree.

checkout   ROOT/tools/instrument/mobius_instrument, ROOT/build/release/bin, ROOT/bench/suite
installed  PREFIX/…/mobius_instrument, PREFIX/bin, PREFIX/libexec/mobius,
           PREFIX/share/mobius/suite
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Locations:
    """The folders found; a program in none of `programs` is reported as missing."""

    programs: tuple[Path, ...]
    suite_sources: Path | None
    cache: Path
    app_sources: Path | None = None

    def program(self, name: str) -> Path | None:
        """The path of one of our programs, if it exists."""
        for folder in self.programs:
            path = folder / name
            if path.is_file() and os.access(path, os.X_OK):
                return path
        return None

    @property
    def searched(self) -> str:
        """The folders in which `program` looks, for messages."""
        return ", ".join(str(folder) for folder in self.programs) or "no folder"


def checkout_root() -> Path | None:
    """The root of the source tree that contains this package, if any."""
    for parent in _PACKAGE.parents:
        if (parent / "CMakeLists.txt").is_file() and (parent / "bench" / "suite").is_dir():
            return parent
    return None


def locate() -> Locations:
    """MOBIUS_HOME_BIN and MOBIUS_SUITE_SOURCES if set; otherwise the checkout or the prefix.

    MOBIUS_HOME_CACHE names the folder of installed libraries and built programs.
    """
    programs: list[Path] = []
    sources: list[Path] = []
    root = checkout_root()
    if root:
        programs.append(root / "build" / "release" / "bin")
        sources.append(root / "bench" / "suite")
    else:
        for prefix in _PACKAGE.parents:
            if (prefix / "libexec" / "mobius").is_dir() or (
                prefix / "share" / "mobius" / "suite"
            ).is_dir():
                # The native command first: PREFIX/bin/mobius may be the script that called us.
                programs += [prefix / "libexec" / "mobius", prefix / "bin"]
                sources.append(prefix / "share" / "mobius" / "suite")
                break
    if home := os.environ.get("MOBIUS_HOME_BIN"):
        programs = [Path(home)]
    if given := os.environ.get("MOBIUS_SUITE_SOURCES"):
        sources = [Path(given)]
    if given := os.environ.get("MOBIUS_HOME_CACHE"):
        cache = Path(given)
    elif root:
        cache = root / ".mobius"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mobius"
    found = next((folder for folder in sources if (folder / "main.c").is_file()), None)
    # The applications are beside it in an installed tree, and beside their folder in a checkout.
    places = (found.parent / "apps", found.parent.parent / "apps") if found else ()
    apps = next((place for place in places if (place / "lu").is_dir()), None)
    return Locations(tuple(dict.fromkeys(programs)), found, cache, apps)

# SPDX-License-Identifier: BSD-3-Clause
"""Fills tables of recorded figures into the Markdown pages.

A page says where a table belongs:

    <!-- figures: NAME -->
    <!-- end of figures -->

The table NAME of tables.py replaces the lines between the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mobius_setup.docs import tables
from mobius_setup.docs.recording import DocsError

_BEGIN = re.compile(r"^<!-- figures: (\S+) -->$", re.M)
_END = "<!-- end of figures -->"


def pages(root: Path) -> Iterator[Path]:
    """Every page that may have tables."""
    yield root / "README.md"
    for folder in ("docs", "apps"):
        yield from sorted((root / folder).rglob("*.md"))


def filled(text: str, root: Path) -> str:
    """The text of a page with its tables as they are now."""
    parts = []
    place = 0
    for begin in _BEGIN.finditer(text):
        end = text.find(_END, begin.end())
        if end < 0 or _BEGIN.search(text, begin.end(), end):
            raise DocsError(f"'{begin[0]}' has no line '{_END}' of its own below it")
        parts += [text[place : begin.end()], "\n\n", tables.make(begin[1], root), "\n"]
        place = end
    return "".join(parts) + text[place:]


def stale(root: Path) -> dict[Path, str]:
    """Pages whose tables are not what the recordings give, with the text that they should have."""
    found = {}
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        try:
            wanted = filled(text, root)
        except DocsError as error:
            raise DocsError(f"{page.relative_to(root)}: {error}") from error
        if wanted != text:
            found[page] = wanted
    return found

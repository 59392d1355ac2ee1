# SPDX-License-Identifier: BSD-3-Clause
"""Prints lowered text with the lines of the source.

Lowered text has marks that say which offset of the source what follows comes from
(`lower.context`). Where the lines do not agree, new lines or a marker `# line "file"` bring them
together.
"""

from __future__ import annotations

import re

from .source import SourceText

MARK = re.compile("\x01(\\d+)\x02")
MOST_BLANK_LINES = 8
# What glibc declares for the old GCC that it was shown, and the compiler knows by itself.
FLOATS = re.compile(r"\btypedef\s+[\w ]+\s_Float(?:32|64|32x|64x|128)\s*;")


def quoted(text: str) -> str:
    """A string literal of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def print_text(lowered: str, source: SourceText, file: str) -> str:
    """The C text of a file, for a compiler that takes it as preprocessed."""
    parts = [f"# 1 {quoted(file)}\n"]  # names the compilation unit
    line = 1
    position = 0
    for mark in [*MARK.finditer(lowered), None]:
        piece = lowered[position : mark.start() if mark else len(lowered)]
        if piece:
            parts.append(piece)
            line += piece.count("\n")
        if mark is None:
            break
        position = mark.end()
        offset = int(mark[1])
        place = source.place(offset)
        if (place.file, place.line) == (file, line):
            continue
        ahead = place.line - line
        if place.file == file and 0 < ahead <= MOST_BLANK_LINES:
            parts.append("\n" * ahead)
        else:
            flag = " 3" if source.mark_at(offset).system else ""
            new_line = "" if parts[-1].endswith("\n") else "\n"
            parts.append(f"{new_line}# {place.line} {quoted(place.file)}{flag}\n")
        file, line = place.file, place.line
    return FLOATS.sub(";", "".join(parts))

# SPDX-License-Identifier: BSD-3-Clause
"""Has libclang parse a rewritten text, and judges what Clang complains about.

Clang refuses each implicit conversion between address spaces. Which of them UPC allows is decided
where they are lowered; here each is only wrapped, so that Clang accepts it, and the text is
parsed again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from . import cursors, messages
from .cursors import Cursor, Diagnostic
from .layout import THREADS_STAND_IN, LayoutTable
from .problems import Place, Problem, Problems
from .source import Edit, SourceText

FILE_NAME = "program.upc"
# What Clang takes for errors and GCC for warnings, the C compiler tells.
TOLERATED = (
    "implicit-function-declaration",
    "implicit-int",
    "int-conversion",
    "incompatible-function-pointer-types",
    "return-type",
)
ARGUMENTS = [
    *("-x", "c", "-std=gnu11", "-w", "-ferror-limit=0", "-fno-spell-checking"),
    "-fbracket-depth=2048",
    *(f"-Wno-error={name}" for name in TOLERATED),
]
BEFORE, AFTER = "__builtin_choose_expr(1,0,(", "))"
CONVERSION = re.compile(
    r"changes address space of (nested )?pointer|pointers to non-overlapping address spaces"
    r"|are not pointers to compatible types"
)
ADDRESS_SPACE = re.compile(r"__attribute__\(\(address_space\((\d+)\)\)\)")
# Sizes are those of pointers of Clang's: the C compiler judges them again.
# An initial value that is not constant may be one that code computes before main.
LEFT_TO_COMPILER = re.compile(
    r"array with a negative size|static assertion failed|static_assert failed"
    r"|initializer element is not a compile-time constant"
)
PARAMETER_ARRAY = re.compile(r"(\w*)\s*(\[[^\[\]]*\])\s*(\[)?")
SHARED_PARAMETER = "parameter may not be qualified with an address space"
MAX_PARSES = 40


@dataclass
class Unit:
    """A parsed translation unit."""

    source: SourceText
    layouts: LayoutTable
    problems: Problems
    threads: int | None
    cursor: Cursor
    checks: bool = False  # -fsanitize=shared
    keeps: list[Any] = field(default_factory=list)  # what the cursors point into


def describe(message: str, layouts: LayoutTable) -> str:
    """Clang's message with address spaces as the source writes them, and UPC's reasons."""

    def name(match: re.Match[str]) -> str:
        return str(layouts.layout(int(match[1])))

    text = ADDRESS_SPACE.sub(name, message)
    if "automatic variable qualified with an address space" in text:
        return messages.AUTOMATIC
    if "field may not be qualified with an address space" in text:
        return messages.MEMBER
    if "'address_space' attribute requires an integer constant" in text:
        return messages.BLOCK_NOT_CONSTANT
    if SHARED_PARAMETER in text:
        return messages.PARAMETER
    if "function type may not be qualified with an address space" in text:
        return messages.FUNCTION
    if ("return type" in text and "address space" in text) or (
        "function with" in text and "address space" in text
    ):
        return messages.RESULT
    if "declared as an array with a negative size" in text or "multiple address spaces" in text:
        text += " (a type can be shared with one layout only)"
    return text


def parse(
    source: SourceText, layouts: LayoutTable, problems: Problems, threads: int | None
) -> Unit:
    """Parses; a text with errors raises TranslationError."""
    index = cursors.new_index()
    for turn in range(MAX_PARSES):
        tree = cursors.parse(index, FILE_NAME, source.text, ARGUMENTS)
        wrapped: list[tuple[int, int]] = []
        edits: list[Edit] = []
        others: list[Problem] = []
        for error in tree.diagnostics:
            if error.severity < cursors.ERROR or LEFT_TO_COMPILER.search(error.spelling):
                continue
            span = expression_of(error) if CONVERSION.search(error.spelling) else None
            decayed = decayed_parameter(source, error)
            if span is not None:
                wrapped.append(span)
            elif decayed:
                edits += decayed
            else:
                place = source.place(error.location.offset)
                others.append(Problem(place, describe(error.spelling, layouts)))
        if (wrapped or edits) and turn < MAX_PARSES - 1:
            # Parameters first: insertions would move what the others say.
            source.edit(edits or wrappers(wrapped))
            continue
        for problem in others:
            problems.add(problem)
        problems.raise_errors()
        unit = Unit(source, layouts, problems, threads, tree.cursor, keeps=[index, tree])
        resolve_stars(unit)
        return unit
    raise AssertionError


def decayed_parameter(source: SourceText, error: Diagnostic) -> list[Edit]:
    """Makes `shared int a[]` the parameter `shared int *a`, as it is in C; Clang refuses to."""
    if SHARED_PARAMETER not in error.spelling:
        return []
    start = error.location.offset
    found = PARAMETER_ARRAY.match(source.text, start)
    if found is None:
        return []
    name, size, more = found[1], found.span(2), found[3]
    edits = [Edit(start, start, "(*" if more else "*"), Edit(size[0], size[1], "")]
    if more:
        edits[1] = Edit(size[0], size[1], ")")
    elif not name:
        edits = [Edit(size[0], size[1], "*")]
    return edits


def expression_of(error: Diagnostic) -> tuple[int, int] | None:
    """The expression to wrap: the last of those that the error underlines."""
    ranges = [(entry.start.offset, entry.end.offset) for entry in error.ranges]
    ranges = [entry for entry in ranges if entry[0] < entry[1]]
    if ranges:
        return ranges[-1]
    return None


def wrappers(spans: list[tuple[int, int]]) -> list[Edit]:
    """Wraps expressions; of two that overlap, the inner one in this turn."""
    pairs = sorted(set(spans))
    inner = [
        pair
        for pair in pairs
        if not any(o != pair and pair[0] <= o[0] and o[1] <= pair[1] for o in pairs)
    ]
    chosen = [Edit(start, start, BEFORE) for start, _ in inner]
    chosen += [Edit(end, end, AFTER) for _, end in inner]
    # An end that is another's start is written first.
    chosen.sort(key=lambda edit: (edit.start, edit.text == BEFORE))
    return chosen


def resolve_stars(unit: Unit) -> None:
    """Finds the block of every `[*]` by its declaration."""
    if not any(layout.star for layout in unit.layouts.spaces):
        return
    for cursor in cursors.walk_declarations(unit.cursor):
        kind = cursors.declared_type(cursor)
        place = unit.source.place(cursors.start_of(cursor))
        pointed = cursors.pointee(kind) if cursors.is_pointer_to_shared(kind) else None
        if pointed is not None and unit.layouts.star_of(cursors.space_of(pointed)):
            unit.problems.add(Problem(place, messages.STAR_POINTER))
        star = unit.layouts.star_of(cursors.space_of(kind))
        if not star:
            continue
        block = star_block(unit, cursor, place)
        known = unit.layouts.stars.setdefault(star, block)
        if known != block:
            unit.problems.add(Problem(place, messages.STAR_SIZES))


def star_block(unit: Unit, cursor: Cursor, place: Place) -> int:
    """The block size that `[*]` means for the object that a cursor declares."""
    total = 1
    kind = cursors.declared_type(cursor)
    for count in cursors.dimensions(kind):
        total *= count
    if unit.threads is not None:
        return -(-total // unit.threads)
    if total % THREADS_STAND_IN == 0:
        return total // THREADS_STAND_IN
    if total > 1:
        unit.problems.add(Problem(place, messages.THREADS_IN_STAR))
    return 1

# SPDX-License-Identifier: BSD-3-Clause
"""One colour per library in all plots and tables, told apart with any colour vision (after Okabe
and Ito), in a tone for light and one for dark paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Paint:
    """`role` is the name of the CSS variable; `light` and `dark` are its values."""

    role: str
    light: str
    dark: str


FOREGROUND: Final = Paint("ink", "#1b1f27", "#e8ebf0")
MUTED: Final = Paint("ink-2", "#5b6470", "#a3acb9")
GRID: Final = Paint("grid", "#dde1e7", "#323842")
LIMIT: Final = Paint("limit", "#767f8c", "#8d97a5")

_BLUE: Final = Paint("blue", "#0068a8", "#4db2f2")
_ORANGE: Final = Paint("orange", "#d98a00", "#f3b23c")
_GREEN: Final = Paint("green", "#00855f", "#2fc795")
_RED: Final = Paint("red", "#cb5200", "#ff8b4f")
_PINK: Final = Paint("pink", "#b8629a", "#e79bcb")
_SKY: Final = Paint("sky", "#3f9fd0", "#8fd4fb")
_OLIVE: Final = Paint("olive", "#8a7d00", "#d9cc3c")
_VIOLET: Final = Paint("violet", "#6d4bb8", "#b39af0")
_BROWN: Final = Paint("brown", "#7a4a2b", "#c79a78")
_TEAL: Final = Paint("teal", "#0f7d86", "#5fd0d6")
_CRIMSON: Final = Paint("crimson", "#a3123f", "#ff7fa0")

ALL: Final = (
    FOREGROUND, MUTED, GRID, LIMIT, _BLUE, _ORANGE, _GREEN, _RED, _PINK, _SKY, _OLIVE,
    _VIOLET, _BROWN, _TEAL, _CRIMSON,
)  # fmt: skip

# Hues of curves of one library; neighbours differ much.
HUES: Final = (_BLUE, _ORANGE, _GREEN, _PINK, _SKY, _RED, _OLIVE, _VIOLET, _BROWN, LIMIT)

_FIXED: Final = {
    "mobius": _BLUE,
    "mpich": _ORANGE,
    "openmpi": _GREEN,
    "intel": _CRIMSON,
    "lapi": _OLIVE,
    "armci": _VIOLET,
    "armci-openmpi": _TEAL,
    "armci-mpich": _BROWN,
    "shmem": _PINK,
    "debian-mpich": _RED,
    "debian-openmpi": _SKY,
}
_OTHERS: Final = (_VIOLET, _BROWN, _TEAL, _CRIMSON, _OLIVE, _PINK)
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")

SYNC_PAINTS: Final = {
    "flush": _BLUE,
    "fence": _ORANGE,
    "pscw": _GREEN,
    "lock": _PINK,
    "none": LIMIT,
}


@dataclass(frozen=True)
class Look:
    """The colour and marker of a library."""

    paint: Paint
    marker: str


def looks(libraries: dict[str, str]) -> dict[str, Look]:
    """The look of each library, given their kinds; a library always has the same colour."""
    chosen: dict[str, Look] = {}
    others = iter(_OTHERS * len(libraries))
    for number, (name, kind) in enumerate(libraries.items()):
        paint = LIMIT if kind == "limit" else _FIXED.get(name) or next(others)
        chosen[name] = Look(paint, _MARKERS[number % len(_MARKERS)])
    return chosen

# SPDX-License-Identifier: BSD-3-Clause
"""Layouts of shared types, and the address spaces that stand for them in Clang's text."""

from __future__ import annotations

from dataclasses import dataclass, field

# An array dimension that contains THREADS is a multiple of this prime when THREADS is not known.
THREADS_STAND_IN = 2147483659

FIRST_INTERNED = 1000
# A block size that only Clang can compute is the address space itself, above this.
FIRST_COMPUTED = 1_000_000


@dataclass(frozen=True)
class Layout:
    """How the elements of a shared object lie on the threads."""

    block: int  # 0: indefinite, all on one thread
    relaxed: bool = False  # said `relaxed`
    star: int = 0  # the how-manieth `[*]`, while its block is not known
    generic: bool = False  # behind a `shared void *`

    @property
    def phaseless(self) -> bool:
        """Whether pointers have no phase."""
        return self.block <= 1

    def __str__(self) -> str:
        """As the source writes it."""
        return {0: "shared []", 1: "shared"}.get(self.block, f"shared [{self.block}]")


INDEFINITE = Layout(0)
CYCLIC = Layout(1)


@dataclass
class LayoutTable:
    """Layout ↔ address space, for one translation unit."""

    spaces: list[Layout] = field(default_factory=list)
    stars: dict[int, int] = field(default_factory=dict)  # `[*]` → block, once its array is known

    def space(self, layout: Layout) -> int:
        """The address space of a layout."""
        if layout not in self.spaces:
            self.spaces.append(layout)
        return FIRST_INTERNED + self.spaces.index(layout)

    def new_star(self, relaxed: bool) -> int:
        """The address space of one more `[*]`."""
        number = 1 + sum(1 for layout in self.spaces if layout.star)
        return self.space(Layout(1, relaxed, number))

    def layout(self, space: int) -> Layout:
        """The layout of an address space."""
        if space >= FIRST_COMPUTED:
            return Layout(space - FIRST_COMPUTED)
        layout = self.spaces[space - FIRST_INTERNED]
        if layout.star:
            return Layout(self.stars.get(layout.star, 1), layout.relaxed)
        return layout

    def star_of(self, space: int) -> int:
        """Which `[*]` an address space is; 0: none."""
        if space >= FIRST_COMPUTED or space < FIRST_INTERNED:
            return 0
        return self.spaces[space - FIRST_INTERNED].star

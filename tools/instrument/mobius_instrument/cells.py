# SPDX-License-Identifier: BSD-3-Clause
"""Experiments, cells and sizes, and their names in texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from mobius_instrument.errors import InstrumentError

EXPERIMENTS: Final = {
    "pingpong": "paper 1, §4: put (get) there and back; half the round trip is reported",
    "completion": "one put (get) and the wait for its completion; the partner does nothing",
    "sync-cost": "paper 3, Table 2: four bytes by every synchronisation and memory",
    "bandwidth": "many transfers in a row, one way, both ways, many pairs",
    "message-rate": "many transfers of 8 bytes in a row",
    "datatypes": "strided, indexed and packed data beside data in a row; the worst cliff",
    "multi-op": "paper 3, figure 11: one buffer in n transfers",
    "overlap": "paper 3, figure 12: computing while data move, at the target and at the origin",
    "progress": "does an operation complete while its target never calls the library",
    "atomics": "all processes update one word, or one each",
    "accumulate": "all processes add arrays to one of them",
    "locks": "all processes read and write a word under a lock",
    "scaling": "all processes put to the next one at once, 2 to N of them",
    "apex": "paper 4: APEX-Map, reading a global array with more or less locality",
    "lu": "paper 5, figures 5 and 6: a blocked LU factorisation (apps/lu)",
    "md": "paper 5, figure 7: molecular dynamics of water (apps/md)",
    "global-arrays": "Global Arrays over our ARMCI and over its own: a product, patches (apps/ga)",
    "spawn-cost": "paper 3, Table 1: what spawning 1 to 4 processes costs",
    "dynamic-comm": "paper 3, figures 1 to 4: communicators made later beside the static one",
    "schedule": "paper 2: epochs that could be re-ordered, merged or packed, by every policy;"
    " between hosts",
    "matrix": "which operation, synchronisation and memory gives right data, and how fast",
    "protocols": "paper 5, Table 1, figures 3 and 4: one side's transfers, by shared memory and by"
    " messages",
    "trust": "the instrument itself: its cost, the same twice, once 5 % slower",
}

# Not measured unless they are named, or with --full: they take minutes, or often hang.
LONG: Final = ("lu", "md", "global-arrays", "spawn-cost", "dynamic-comm", "apex")
DEFAULT_EXPERIMENTS: Final = tuple(name for name in EXPERIMENTS if name not in LONG)
ALL_EXPERIMENTS: Final = "all"

# The experiments of paper 1, which one launch measures: their bytes stay at one place, and a
# sample of a ping-pong is there and back.
PAPER1_EXPERIMENTS: Final = ("pingpong", "completion")

INTEGER_BYTES: Final = 4

# Both ends of paper 1's range, 1 and 2 integers (4 and 8 bytes) for the latency table, and factors
# of about four between them.
DEFAULT_INTEGERS: Final = (
    1, 2, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 131_072, 262_144, 1_000_000,
)  # fmt: skip
# Factors of two, and three sizes that are no power of two.
FULL_INTEGERS: Final = (
    1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768,
    65_536, 100_000, 131_072, 262_144, 524_288, 1_000_000,
)  # fmt: skip

# Both sides take part: send and receive, or a message that a handler takes.
MESSAGES: Final = ("sendrecv", "message")
_OPERATIONS: Final = {
    "put": "put",
    "get": "get",
    "sendrecv": "send/receive",
    "message": "message",
    "copy": "memcpy",
    "line": "cache line",
}
_MEMORIES: Final = {
    "allocate": "allocated memory",
    "create": "malloc memory",
    "local": "",
    "none": "",
    "alloc_mem": "memory allocated alone",
    "static": "static memory",
    "shared": "shared memory",
    "dynamic": "attached memory",
    "remap": "remapped malloc memory",
}


def memory_words(memory: str) -> str:
    """The name of a kind of memory in sentences."""
    return _MEMORIES.get(memory, memory)


@dataclass(frozen=True, order=True)
class Cell:
    """An `experiment:operation:sync:memory` of the contract (docs/instrument.md)."""

    experiment: str
    operation: str
    sync: str
    memory: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Cell:
        """Reads `experiment:operation:sync:memory[:option=value]…`; raises InstrumentError for
        anything else."""
        parts = text.split(":")
        options = [(name, value) for name, _, value in (part.partition("=") for part in parts[4:])]
        if len(parts) < 4 or not all(parts) or not all(name and value for name, value in options):
            raise InstrumentError(
                f"malformed cell '{text}': expected experiment:operation:sync:memory, and perhaps"
                " :option=value"
            )
        return cls(parts[0], parts[1], parts[2], parts[3], tuple(options))

    def __str__(self) -> str:
        options = "".join(f":{name}={value}" for name, value in self.options)
        return f"{self.experiment}:{self.operation}:{self.sync}:{self.memory}{options}"

    def option(self, name: str, fallback: str = "") -> str:
        """The value of an option."""
        return next((value for key, value in self.options if key == name), fallback)

    def without(self, *names: str) -> Cell:
        """The cell without some of its options."""
        return replace(
            self, options=tuple(option for option in self.options if option[0] not in names)
        )

    def part(self, name: str) -> Cell:
        """The part of a cell, for cells that are measured in several parts."""
        return replace(self, options=(*self.options, ("part", name)))

    @property
    def style(self) -> str:
        """Synchronisation and memory in words: "flush, allocated memory"."""
        words = [] if self.sync == "none" else [self.sync]
        memory = memory_words(self.memory)
        if memory:
            words.append(memory)
        if self.operation in ("copy", "line", *MESSAGES):
            words.insert(0, _OPERATIONS[self.operation])
        return ", ".join(words)

    @property
    def operation_words(self) -> str:
        """The name of the operation in texts."""
        return _OPERATIONS.get(self.operation, self.operation)

    @property
    def repetition_parts(self) -> int:
        """The number of one-way transfers in one repetition."""
        return 2 if self.experiment == "pingpong" else 1

    def one_way_ns(self, sample_ns: float) -> float:
        """The one-way time of a sample that is a whole repetition."""
        return sample_ns / self.repetition_parts


def bandwidth_mb_s(size_bytes: int, one_way_ns: float) -> float:
    """10^6 bytes per second, as in paper 1."""
    return size_bytes * 1000.0 / one_way_ns if one_way_ns > 0 else float("nan")


_SUFFIXES: Final = {"k": 1_024, "m": 1_024 * 1_024}


# The largest number of sizes that the test-suite takes.
_MOST_SIZES: Final = 256


def parse_integers(text: str) -> list[int]:
    """Reads `--sizes`: numbers of four-byte integers with optional suffix k or m (1,024 and its
    square), or of bytes with suffix b; ranges A..B*F multiply, A..B+S add."""
    sizes: set[int] = set()
    for word in (part.strip().lower() for part in text.split(",")):
        sizes.update(_range(word) if ".." in word else [_size(word, word)])
    if len(sizes) > _MOST_SIZES:
        raise InstrumentError(f"--sizes: these are {len(sizes)} sizes; at most {_MOST_SIZES}")
    return sorted(sizes)


def _range(word: str) -> list[int]:
    found = re.fullmatch(r"([^.*+]+)\.\.([^.*+]+)([*+])([^.*+]+)", word)
    if not found:
        raise InstrumentError(
            f"--sizes: '{word}' is no range; write 1..64k*2 to multiply, 1k..2k+64 to add"
        )
    first, last = _size(found[1], word), _size(found[2], word)
    sizes: list[int] = []
    if found[3] == "*":
        if not found[4].isascii() or not found[4].isdigit() or int(found[4]) < 2:
            raise InstrumentError(f"--sizes: '{word}' must multiply by a whole number from 2 on")
        factor, step = int(found[4]), 0
    else:
        factor, step = 1, _size(found[4], word)
    size = first
    while size <= last and len(sizes) <= _MOST_SIZES:
        sizes.append(size)
        size = size * factor + step
    if not sizes:
        raise InstrumentError(f"--sizes: '{word}' ends before it begins")
    return sizes


def _size(number: str, word: str) -> int:
    """The bytes of a number with its suffixes."""
    number, in_bytes = (number[:-1], True) if number.endswith("b") else (number, False)
    factor = 1
    if number and number[-1] in _SUFFIXES:
        factor = _SUFFIXES[number[-1]]
        number = number[:-1]
    if not number.isascii() or not number.isdigit():
        raise InstrumentError(
            f"--sizes: '{word}' is not a number of integers; write for example 1,2,4k,1m or 64b"
        )
    size_bytes = int(number) * factor * (1 if in_bytes else INTEGER_BYTES)
    if not INTEGER_BYTES <= size_bytes <= 1 << 30:
        raise InstrumentError(
            f"--sizes: '{word}' is {size_bytes} bytes; sizes go from 4 bytes to 1 GiB"
        )
    if size_bytes % INTEGER_BYTES:
        raise InstrumentError(f"--sizes: '{word}' is not a multiple of 4 bytes")
    return size_bytes


def format_bytes(size_bytes: float) -> str:
    """4 B, 64 KB, 4 MB: multiples of 1,024 where exact, else three digits in powers of ten."""
    if size_bytes < 1_000:
        return f"{size_bytes:.0f} B"
    for unit, binary, decimal in (("MB", 1 << 20, 10**6), ("KB", 1 << 10, 10**3)):
        if size_bytes >= binary and size_bytes % binary == 0:
            return f"{int(size_bytes) // binary} {unit}"
        if size_bytes >= decimal:
            return f"{size_bytes / decimal:.3g} {unit}"
    return f"{size_bytes:.0f} B"


def format_ns(time_ns: float) -> str:
    """Three significant digits in the unit that fits: "73.1 ns", "1.24 µs", "2.5 ms"."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if time_ns >= factor:
            return f"{_three_digits(time_ns / factor)} {unit}"
    return f"{_three_digits(time_ns)} ns"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_mb_s(value: float) -> str:
    """Bandwidth in MB/s, 10^6 bytes per second."""
    return f"{value:,.0f} MB/s" if value >= 100 else f"{value:.3g} MB/s"


def format_ratio(value: float) -> str:
    """Two or three digits; all digits before the point."""
    return (
        f"{value:,.0f}" if value >= 99.5 else (f"{value:.1f}" if value >= 1.995 else f"{value:.2f}")
    )

# SPDX-License-Identifier: BSD-3-Clause
"""Runs the C compiler's preprocessor over a .upc file."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# The headers of glibc and GCC show Clang only what it can parse when they take it for an old GCC.
AS_CLANG = (
    *("-U__GNUC__", "-D__GNUC__=4", "-U__GNUC_MINOR__", "-D__GNUC_MINOR__=2"),
    *("-U_FORTIFY_SOURCE", "-D__clang__=1"),
)
# The largest block: what a phase of 32 bits holds.
MAX_BLOCK_SIZE = 2**31 - 1


@dataclass(frozen=True)
class Environment:
    """What a translation depends on beside the source."""

    compiler: tuple[str, ...] = ("gcc",)
    includes: tuple[Path, ...] = ()  # folders of the headers of UPC and of the run time
    runtime_header: str = "mobius_upc/runtime.h"  # "": none, for tests of parts
    threads: int | None = None  # static THREADS; None: known when the program starts
    arguments: tuple[str, ...] = field(default=())  # the user's -D, -I, -std=, -O …

    def predefined(self) -> list[str]:
        """The macros that UPC predefines."""
        names = ["__UPC__=1", "__UPC_VERSION__=201311L", f"UPC_MAX_BLOCK_SIZE={MAX_BLOCK_SIZE}"]
        names += [
            f"__UPC_{name}__=1" for name in ("COLLECTIVE", "TICK", "ATOMIC", "CASTABLE", "NB")
        ]
        names.append("__UPC_IO__=2")
        if self.threads is None:
            names.append("__UPC_DYNAMIC_THREADS__=1")
        else:
            for name in ("__UPC_STATIC_THREADS__", "THREADS", "MOB_UPC_STATIC_THREADS"):
                names.append(f"{name}={self.threads}")
        return [f"-D{name}" for name in names]


class PreprocessorError(Exception):
    """The preprocessor refused the file; it has said why on standard error."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the preprocessor ended with code {code}")
        self.code = code


def command(source: Path, environment: Environment, *, for_user: bool = False) -> list[str]:
    """The preprocessor's command; `for_user`: what `-E` shows, without the translator's tricks."""
    arguments = [*environment.compiler, "-E", "-x", "c", *environment.predefined()]
    if not for_user:
        arguments += AS_CLANG
        if environment.runtime_header:
            arguments += ["-include", environment.runtime_header]
    for folder in environment.includes:
        arguments += ["-isystem", str(folder)]
    return [*arguments, *environment.arguments, str(source)]


def preprocess(source: Path, environment: Environment, extra: tuple[str, ...] = ()) -> str:
    """The preprocessed text, each byte one character.

    `extra` are further options, as for dependency files. Errors go to standard error as they come.
    """
    arguments = command(source, environment)
    result = subprocess.run([*arguments[:-1], *extra, arguments[-1]], stdout=subprocess.PIPE)
    if result.returncode:
        raise PreprocessorError(result.returncode)
    return result.stdout.decode("latin-1")

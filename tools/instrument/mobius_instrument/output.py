# SPDX-License-Identifier: BSD-3-Clause
"""Standard output that distinguishes a full disk, a closed pipe and other errors."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from mobius_instrument.errors import InstrumentError, system_reason


class ReaderGoneError(Exception):
    """The reader of our output has gone (`… | head`). Not an OSError: rich ends on EPIPE."""


def _told(error: OSError) -> Exception:
    # Nothing more can be written, and the interpreter, which flushes at its end, must not try.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return ReaderGoneError()
    return InstrumentError(f"writing standard output failed: {system_reason(error)}")


class _Output(io.TextIOWrapper):
    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise _told(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise _told(error) from error


def watch_output() -> None:
    """From now on, a write to standard output that fails raises InstrumentError or
    ReaderGoneError."""
    old = sys.stdout
    if old is None:  # closed by the caller, so not wanted
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(old, io.TextIOWrapper):
        encoding, errors, by_line = old.encoding, old.errors, old.line_buffering
        sys.stdout = _Output(old.detach(), encoding, errors, line_buffering=by_line)

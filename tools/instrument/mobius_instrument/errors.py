# SPDX-License-Identifier: BSD-3-Clause
"""The error for everything that a user can cause: one line with what, where and how to fix it."""

from __future__ import annotations


class InstrumentError(Exception):
    """Printed as `mobius: error: TEXT`; the command ends with exit code 2."""


def system_reason(error: OSError) -> str:
    """The system's text for an error, without the path, which callers name themselves."""
    return error.strerror or str(error)

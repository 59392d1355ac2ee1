# SPDX-License-Identifier: BSD-3-Clause
"""`python -m mobius_instrument COMMAND …`, as the `mobius` entry script calls it."""

from __future__ import annotations

from mobius_instrument.cli import main

if __name__ == "__main__":
    main()

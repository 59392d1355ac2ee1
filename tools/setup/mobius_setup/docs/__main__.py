# SPDX-License-Identifier: BSD-3-Clause
"""The command line of `./mobius docs`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mobius_setup.docs import figures, record, reference
from mobius_setup.docs.recording import DocsError


def _figures(root: Path, check: bool) -> int:
    stale = figures.stale(root)
    for page, text in stale.items():
        if check:
            print(f"{page.relative_to(root)}: its tables are not those of docs/results")
        else:
            page.write_text(text, encoding="utf-8")
            print(f"{page.relative_to(root)}: tables made again")
    if check and stale:
        print("make them with: ./mobius docs figures")
    return 1 if check and stale else 0


def main() -> int:
    """Runs what the arguments name; the exit code."""
    parser = argparse.ArgumentParser(prog="./mobius docs", description=__doc__, allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("figures", help="fill recorded figures into the pages")
    making.add_argument("--check", action="store_true", help="only say whether that changes any")
    recording = commands.add_parser("record", help="measure, and write docs/results")
    recording.add_argument("parts", nargs="*", metavar="PART", help=" ".join(record.PARTS))
    site = commands.add_parser("reference", help="make the site of the public headers")
    site.add_argument("--check", action="store_true", help="only look for what is not described")
    site.add_argument("headers", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = options.root.resolve()
    try:
        if options.command == "figures":
            return _figures(root, options.check)
        if options.command == "record":
            return record.run(root, options.parts)
        return reference.run(root, check=options.check)
    except DocsError as error:
        print(f"mobius docs: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

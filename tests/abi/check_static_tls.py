# SPDX-License-Identifier: BSD-3-Clause
"""Checks how much static thread-local storage libmobius takes.

A running program that loads the library, as Python or Julia do, has little of it left: glibc keeps
1,664 bytes for all libraries that are loaded later.
"""

import re
import subprocess
import sys

MOST_BYTES = 512


def main() -> int:
    """Prints what is wrong; returns 0 if nothing is."""
    segments = subprocess.run(
        ["readelf", "--segments", "--wide", sys.argv[1]], check=True, capture_output=True, text=True
    ).stdout
    found = re.search(r"^\s*TLS\s+(?:0x\w+\s+){4}(0x\w+)", segments, re.MULTILINE)
    if found is None:
        print("readelf shows no TLS segment; has its format changed?")
        return 1
    size = int(found.group(1), 16)
    if size >= MOST_BYTES:
        print(f"{size} bytes of static thread-local storage; less than {MOST_BYTES} are wanted")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""`python -m mobius_upc PREFIX ARGUMENTS`: mobupcc of the tree installed in PREFIX."""

import sys
from pathlib import Path

try:
    from .driver import main
except ImportError as missing:
    print(f"mobupcc: {missing}", file=sys.stderr)
    sys.exit(77)

sys.exit(main(sys.argv[2:], Path(sys.argv[1])))

# SPDX-License-Identifier: BSD-3-Clause
"""Runs the installed instrument: start.py LIBRARIES SUBCOMMAND ARGS…

The interpreter is isolated (-I), and the libraries come by path and not by PYTHONPATH, which the
programs that the instrument starts (other Pythons among them) would inherit.
"""

import runpy
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), sys.argv.pop(1)]
runpy.run_module("mobius_instrument", run_name="__main__", alter_sys=True)

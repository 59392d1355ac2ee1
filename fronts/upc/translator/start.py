# SPDX-License-Identifier: BSD-3-Clause
"""Runs the installed translator: start.py LIBRARIES PREFIX ARGUMENTS…

The interpreter is isolated (-I), and the libraries come by path and not by PYTHONPATH.
"""

import runpy
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), sys.argv.pop(1)]
runpy.run_module("mobius_upc", run_name="__main__", alter_sys=True)

# SPDX-License-Identifier: BSD-3-Clause
"""Writes C over the run time for a typed tree of UPC.

`unit` goes through the declarations; `declarations`, `statements` and `expressions` lower one
each; `accesses` knows where shared objects are; `foralls` and `locals` find what needs no test
and no pointer.
"""

from .unit import lower

__all__ = ["lower"]

# SPDX-License-Identifier: BSD-3-Clause
"""The report: analysis (statistics of all series) → findings, plots, tables → page.

Everything is computed from a results file; nothing here measures.
"""

from __future__ import annotations

from mobius_instrument.presentation.page import Written, write_report

__all__ = ["Written", "write_report"]

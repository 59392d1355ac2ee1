# SPDX-License-Identifier: BSD-3-Clause
"""The instrument: measures one-sided communication in Möbius and in every MPI found.

`docs/instrument-formats.md` is the contract between this package and its programs. Below, modules
only use those further left:

    errors, cells, stats, locations → machine → turns/board → results, libraries → experiments
    → plan → launch, progress → turns/concert → steps → session → compare, presentation, export
    → cli

Nothing here measures: times come from the programs alone.
"""

from __future__ import annotations

SCHEMA_VERSION = 1

# SPDX-License-Identifier: BSD-3-Clause
"""`./mobius docs`: the parts of the documents that are made from the tree.

- `record.py` measures and writes docs/results/NAME.jsonl, one file per part, each of one run.
- `recording.py` reads such a file.
- `tables.py` defines the tables that are made of them.
- `figures.py` fills the tables into the Markdown pages, between their markers.
- `reference.py` makes the site of the public headers with Doxygen, and checks their descriptions.
"""

# SPDX-License-Identifier: BSD-3-Clause
"""The parts of ./mobius that are Python.

Run with the environment in .mobius/venv. `results` and `suites` belong to `./mobius test`,
`sources`, `tidy` and `format` to `./mobius lint`, `vendor` to `./mobius install`.
"""

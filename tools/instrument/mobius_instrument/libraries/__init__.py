# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that can be measured: one module per kind, `discover` lists those of this machine.

A module finds or installs its library, builds its program and says how to launch it. It does not
launch a measurement.
"""

# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that take turns (docs/decisions/0029-libraries-take-turns.md).

`board` is the file that all programs map, and the conductor that gives turns. `concert` launches
the programs of several libraries at once and hears what they measure. `steps`, outside, decides
which launches take turns.
"""

# SPDX-License-Identifier: BSD-3-Clause
"""The machine that is measured, and starting programs on it.

`host` describes it and chooses CPUs, `hosts` are the other ones, `crowd` tells who else used the
CPUs, `distance` how far these are from each other. `processes` runs other people's programs so that
nothing of them is left, `shared_memory` removes what killed ones leave. Nothing here knows of
libraries or experiments.
"""

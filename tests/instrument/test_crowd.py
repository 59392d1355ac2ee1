# SPDX-License-Identifier: BSD-3-Clause
"""Who else used the CPUs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mobius_instrument.machine.crowd import Meter, Taken
from mobius_instrument.machine.host import allowed_cpus

_BURN_S = 0.6
# Spends so much CPU time, says so, and waits to be told to end.
_BURNER = f"""
import sys, time
while time.process_time() < {_BURN_S}: pass
print("done", flush=True)
sys.stdin.read()
"""


def test_time_of_another_program_is_seen() -> None:
    meter = Meter()
    with subprocess.Popen(
        [sys.executable, "-c", _BURNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as burner:
        assert burner.stdout is not None
        assert burner.stdout.readline() == b"done\n"
        # Not waited for yet, it is anybody's.
        running = meter.taken()
    ended = meter.taken()
    assert running.others_s > _BURN_S / 2
    assert running.seconds < ended.seconds
    # Then it is known to be ours, whatever others did meanwhile.
    most_s = (ended.seconds - running.seconds) * len(allowed_cpus())
    assert ended.others_s < running.others_s + most_s - _BURN_S / 2


@pytest.mark.parametrize(
    ("others_s", "stolen_s", "expected"),
    [(0.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (5.0, 5.0, 2.0), (15.0, 0.0, 4.0), (20.0, 0.0, 6.0)],
)
def test_patience_is_the_time_that_others_leave(
    others_s: float, stolen_s: float, expected: float
) -> None:
    taken = Taken(10.0, others_s, stolen_s, own_s=2.0)
    assert taken.patience(2, 6.0) == pytest.approx(expected)


def test_no_patience_with_sleeping_programs() -> None:
    assert Taken(10.0, 19.0, 0.0, own_s=0.2).patience(2, 6.0) == 1.0

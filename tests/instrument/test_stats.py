# SPDX-License-Identifier: BSD-3-Clause
"""Statistics against known values."""

from __future__ import annotations

import numpy as np
import pytest
from mobius_instrument.cells import (
    Cell,
    bandwidth_mb_s,
    format_bytes,
    format_ns,
    parse_integers,
)
from mobius_instrument.errors import InstrumentError
from mobius_instrument.stats import (
    bootstrap_medians,
    ratio_of_medians,
    ratio_within_rounds,
    summarise,
)


def test_summary_of_known_values() -> None:
    summary = summarise([np.array([1.0, 2.0, 3.0]), np.array([4.0, 10.0])], seed=1)
    assert (summary.launches, summary.samples) == (2, 5)
    assert (summary.minimum, summary.median, summary.average, summary.maximum) == (1, 3, 4, 10)
    assert summary.deviation == pytest.approx(np.std([1, 2, 3, 4, 10], ddof=1))
    assert summary.launch_medians == (2.0, 7.0)
    assert summary.percentiles == pytest.approx((1.2, 2.0, 4.0, 8.8, 9.76))
    assert 1 <= summary.low <= 3 <= summary.high <= 10


def test_constant_samples_have_an_empty_interval() -> None:
    summary = summarise([np.full(50, 7.0)] * 3, seed=1)
    assert (summary.low, summary.median, summary.high, summary.deviation) == (7, 7, 7, 0)


def test_single_sample() -> None:
    summary = summarise([np.array([5.0])], seed=1)
    assert (summary.median, summary.low, summary.high, summary.deviation) == (5, 5, 5, 0)


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarise([np.array([])], seed=1)


def test_same_seed_same_interval() -> None:
    launches = [np.random.default_rng(i).normal(100, 5, 60) for i in range(3)]
    assert summarise(launches, seed=3) == summarise(launches, seed=3)
    assert not np.array_equal(bootstrap_medians(launches, 3), bootstrap_medians(launches, 4))


def test_bootstrap_of_one_launch_agrees_with_plain_resampling() -> None:
    samples = np.random.default_rng(5).exponential(100, 101)
    plain = np.median(np.random.default_rng(6).choice(samples, (4000, 101)), axis=1)
    direct = bootstrap_medians([samples], 7, 4000)
    for percent in (2.5, 25, 50, 75, 97.5):
        assert np.percentile(direct, percent) == pytest.approx(
            np.percentile(plain, percent), rel=0.05
        )


def test_interval_shows_what_launches_differ_by() -> None:
    rng = np.random.default_rng(8)
    alike = [rng.normal(100, 1, 200) for _ in range(3)]
    apart = [rng.normal(middle, 1, 200) for middle in (80, 100, 120)]
    narrow, wide = summarise(alike, 1), summarise(apart, 1)
    assert narrow.high - narrow.low < 1
    assert wide.low < 85
    assert wide.high > 115
    assert wide.spread == pytest.approx(1.5, rel=0.02)


def test_interval_covers_the_true_median_as_often_as_it_says() -> None:
    """Many launches: with few, any bootstrap over launches is too narrow."""
    rng = np.random.default_rng(9)
    covered = 0
    for trial in range(200):
        launches = [rng.normal(100 + rng.normal(0, 3), 5, 20) for _ in range(20)]
        summary = summarise(launches, trial)
        covered += summary.low <= 100 <= summary.high
    assert covered / 200 > 0.88


def test_ratio() -> None:
    rng = np.random.default_rng(10)
    slow = [rng.normal(200, 2, 50) for _ in range(3)]
    fast = [rng.normal(100, 1, 50) for _ in range(3)]
    ratio = ratio_of_medians(slow, fast, 1)
    assert ratio.value == pytest.approx(2, rel=0.02)
    assert ratio.low <= ratio.value <= ratio.high
    assert ratio.is_real(0.03)
    assert not ratio_of_medians(fast, fast, 1).is_real(0.03)
    almost = [launch * 1.02 for launch in fast]
    assert not ratio_of_medians(almost, fast, 1).is_real(0.03)


def test_ratio_of_series_of_the_same_launches() -> None:
    rng = np.random.default_rng(11)
    fast = [rng.normal(100 * launch, 1, 200) for launch in (1, 2)]
    slow = [launch * 1.5 for launch in fast]
    apart = ratio_of_medians(slow, fast, 1)
    together = ratio_of_medians(slow, fast, 1, paired=True)
    assert apart.low < 1 < apart.high  # The one of the fast launch, the other of the slow one.
    assert together.value == pytest.approx(1.5)
    assert 1.49 < together.low <= 1.5 <= together.high < 1.51
    assert ratio_of_medians(slow[:1], fast[:1], 1, paired=True).value == pytest.approx(1.5)
    # Launches that differ make it uncertain.
    other = [fast[0] * 1.5, fast[1] * 1.1]
    unlike = ratio_of_medians(other, fast, 1, paired=True)
    assert unlike.value == pytest.approx((1.5 * 1.1) ** 0.5)
    assert unlike.low < 1.11
    assert unlike.high > 1.49
    # Cells of different launches are compared as unpaired.
    assert ratio_of_medians(slow, fast[:1], 1, paired=True).high > 2


def test_bandwidth_and_one_way_time() -> None:
    cell = Cell.parse("pingpong:put:flush:allocate")
    assert cell.one_way_ns(2000) == 1000
    assert Cell.parse("completion:put:flush:allocate").one_way_ns(2000) == 2000
    assert bandwidth_mb_s(4_000_000, 1_000_000) == pytest.approx(4_000)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1", [4]), ("2,1,2", [4, 8]), ("1k", [4096]), ("1m", [4 << 20]), ("64b", [64]),
        ("1..8*2", [4, 8, 16, 32]), ("4b..16b+4b,1k", [4, 8, 12, 16, 4096]), ("2..2+1", [8]),
        ("4kb", [4096]), (" 1 , 1000000 ", [4, 4_000_000]),
    ],
)  # fmt: skip
def test_sizes(text: str, sizes: list[int]) -> None:
    assert parse_integers(text) == sizes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1,,2",
        "-1",
        "0",
        "1.5",
        "5b",
        "999999999999",
        "k",
        "²",
        "1..",
        "1..4",
        "4..1*2",
        "1..4*1",
        "1..4*x",
        "1..4+0",
        "1..1m+1",
        "1..2..3*2",
    ],
)
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InstrumentError, match="--sizes"):
        parse_integers(text)


@pytest.mark.parametrize("text", ["", "a:b:c", "a:b:c:d:e", "a::c:d"])
def test_malformed_cells(text: str) -> None:
    with pytest.raises(InstrumentError, match="malformed cell"):
        Cell.parse(text)


def test_units() -> None:
    assert [format_bytes(n) for n in (4, 4096, 4_000_000, 1 << 20, 1000)] == [
        "4 B", "4 KB", "4 MB", "1 MB", "1 KB",
    ]  # fmt: skip
    assert [format_ns(n) for n in (1.234, 73.14, 432.1, 1240, 2.5e6, 3e9)] == [
        "1.23 ns", "73.1 ns", "432 ns", "1.24 µs", "2.50 ms", "3.00 s",
    ]  # fmt: skip


def test_interval_of_rounds_shows_what_starts_differ_by() -> None:
    """Rounds of one start agree with each other, and say nothing of another start."""
    ours = [np.full(5, 100.0)] * 12
    counts = {150.0: 5, 152.0: 5, 180.0: 2}
    theirs = [np.full(5, value) for value, count in counts.items() for _ in range(count)]
    starts = [start for start, count in enumerate(counts.values()) for _ in range(count)]
    ratio = ratio_within_rounds(theirs, ours, 1, starts)
    assert (ratio.low, ratio.value, ratio.high) == (1.5, 1.52, 1.8)
    one_start = ratio_within_rounds(theirs, ours, 1, [0] * 12)
    assert one_start.low >= 1.5
    assert one_start.high < 1.8
    summary = summarise(theirs, 1, starts)
    assert (summary.low, summary.median, summary.high, summary.launches) == (150, 152, 180, 12)


def test_interval_of_starts_of_different_length() -> None:
    theirs = [np.full(5, value) for value in (110.0, 110.0, 110.0, 130.0)]
    ratio = ratio_within_rounds(theirs, [np.full(5, 100.0)] * 4, 1, [7, 7, 7, 9])
    assert (ratio.low, ratio.value, ratio.high) == (1.1, 1.1, 1.3)

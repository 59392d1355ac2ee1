# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of a series at one size.

Samples of one launch are not independent of each other: where the launch put its memory and what
else the machine did is common to them. The interval of the median therefore resamples launches
first and samples within them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Percentiles of the samples, besides the median.
PERCENTILES: Final = (5, 25, 75, 95, 99)
BOOTSTRAP_RESAMPLES: Final = 2_000
_INTERVAL: Final = (2.5, 97.5)
# More samples than these do not change an interval that launches dominate.
_MOST_SAMPLES_PER_LAUNCH: Final = 2_048
# With fewer starts, nothing is known of how they differ.
_FEWEST_STARTS: Final = 2


@dataclass(frozen=True)
class Summary:
    """Statistics in nanoseconds; `low`, `high` is the 95 % interval of the median."""

    launches: int
    samples: int
    minimum: float
    median: float
    average: float
    maximum: float
    deviation: float
    low: float
    high: float
    launch_medians: tuple[float, ...]
    # The values of PERCENTILES, in their order.
    percentiles: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The largest launch median over the smallest: 1 if all launches agree."""
        return max(self.launch_medians) / max(min(self.launch_medians), 1e-9)


def bootstrap_medians(
    launches: Sequence[Floats], seed: int, resamples: int = BOOTSTRAP_RESAMPLES
) -> Floats:
    """Medians of `resamples` replicates: launches drawn with replacement, then as many samples from
    the drawn launches.

    The median of n draws from known values is the value at a Beta((n+1)/2, (n+1)/2) distributed
    quantile, so it is drawn directly: no n × resamples array, and a report of a thousand series
    takes seconds.
    """
    kept = [_thin(np.asarray(launch, dtype=np.float64)) for launch in launches if len(launch)]
    if not kept:
        raise ValueError("no samples")
    rng = np.random.default_rng(seed)
    count = len(kept)
    values = np.concatenate(kept)
    owner = np.repeat(np.arange(count), [len(launch) for launch in kept])
    order = np.argsort(values, kind="stable")
    values, owner = values[order], owner[order]
    # Row i: samples of each launch among the first i + 1 of all, so that a replicate's cumulative
    # distribution at i is a weighted sum of row i.
    cumulative = np.cumsum(owner[:, None] == np.arange(count), axis=0, dtype=np.float64)

    picks = rng.multinomial(count, np.full(count, 1.0 / count), size=resamples).astype(np.float64)
    totals = picks @ cumulative[-1]
    wanted = rng.beta((totals + 1) / 2, (totals + 1) / 2) * totals
    # One binary search for all replicates at once.
    low, high = np.zeros(resamples, np.intp), np.full(resamples, len(values) - 1, np.intp)
    for _ in range(len(values).bit_length()):
        middle = (low + high) // 2
        below = np.einsum("rl,rl->r", picks, cumulative[middle]) < wanted
        low = np.where(below, np.minimum(middle + 1, high), low)
        high = np.where(below, high, middle)
    medians: Floats = values[low]
    return medians


def _thin(samples: Floats) -> Floats:
    if len(samples) <= _MOST_SAMPLES_PER_LAUNCH:
        return samples
    return samples[np.linspace(0, len(samples) - 1, _MOST_SAMPLES_PER_LAUNCH).astype(np.intp)]


def summarise(launches: Sequence[Floats], seed: int, starts: Sequence[int] = ()) -> Summary:
    """Statistics over launches and samples; `launches` holds the samples of each launch. Launches
    may be rounds of fewer starts, whose number `starts` has for each: then starts are resampled."""
    kept = [np.asarray(launch, dtype=np.float64) for launch in launches if len(launch)]
    if not kept:
        raise ValueError("no samples")
    pooled = np.concatenate(kept)
    median = float(np.median(pooled))
    low, high = interval(bootstrap_medians(_of_starts(kept, starts), seed))
    return Summary(
        launches=len(kept),
        samples=len(pooled),
        minimum=float(pooled.min()),
        median=median,
        average=float(pooled.mean()),
        maximum=float(pooled.max()),
        deviation=float(pooled.std(ddof=1)) if len(pooled) > 1 else 0.0,
        # The interval includes the median itself, which a replicate of few launches can miss.
        low=min(low, median),
        high=max(high, median),
        launch_medians=tuple(float(np.median(launch)) for launch in kept),
        percentiles=tuple(float(value) for value in np.percentile(pooled, PERCENTILES)),
    )


def _of_starts(rounds: list[Floats], starts: Sequence[int]) -> list[Floats]:
    """The samples of each start, if there are several."""
    numbers = sorted(set(starts))
    if len(starts) != len(rounds) or len(numbers) < _FEWEST_STARTS:
        return rounds
    return [
        np.concatenate([one for one, start in zip(rounds, starts, strict=True) if start == number])
        for number in numbers
    ]


def ratio_within_rounds(
    numerator: Sequence[Floats],
    denominator: Sequence[Floats],
    seed: int,
    starts: Sequence[int] = (),
) -> Ratio:
    """The ratio of two series that were measured in the same rounds, one element for each: the
    median of the rounds' ratios. What the machine did in a round is common to both. The interval
    resamples starts, of which `starts` has a number for each round, and rounds within them."""
    values = np.array(
        [
            float(np.median(above)) / max(float(np.median(below)), 1e-9)
            for above, below in zip(numerator, denominator, strict=True)
        ]
    )
    value = float(np.median(values))
    low, high = interval(np.median(_resampled(values, seed, starts), axis=1))
    return Ratio(value, min(low, value), max(high, value))


def _resampled(values: Floats, seed: int, starts: Sequence[int]) -> Floats:
    """Replicates of rounds' values, a row each: starts with replacement, then rounds of them."""
    rng = np.random.default_rng(seed)
    groups = _of_starts([values[at : at + 1] for at in range(len(values))], starts)
    if len(groups) == len(values):
        drawn: Floats = values[rng.integers(len(values), size=(BOOTSTRAP_RESAMPLES, len(values)))]
        return drawn
    lengths = np.array([len(group) for group in groups])
    each = int(lengths.max())
    padded = np.array([np.resize(group, each) for group in groups])
    picked = rng.integers(len(groups), size=(BOOTSTRAP_RESAMPLES, len(groups), 1))
    within = rng.random((BOOTSTRAP_RESAMPLES, len(groups), each))
    rows: Floats = padded[picked, (within * lengths[picked]).astype(np.intp)]
    return rows.reshape(BOOTSTRAP_RESAMPLES, -1)


def interval(replicates: Floats) -> tuple[float, float]:
    """The middle 95 % of replicates."""
    low, high = np.percentile(replicates, _INTERVAL)
    return float(low), float(high)


@dataclass(frozen=True)
class Ratio:
    """`numerator / denominator` of two medians, with its 95 % interval."""

    value: float
    low: float
    high: float

    def is_real(self, threshold: float) -> bool:
        """Whether the interval excludes 1 and the ratio differs from 1 by more than `threshold`."""
        return (self.low > 1 or self.high < 1) and abs(self.value - 1) > threshold


def ratio_of_medians(
    numerator: Sequence[Floats], denominator: Sequence[Floats], seed: int, paired: bool = False
) -> Ratio:
    """The ratio of the medians of two series, each given by launches. Paired series were measured
    in the same launches, in the same order; then the result is the geometric mean of the launches'
    ratios, because effects of a launch are common to both."""
    counts = [sum(len(launch) > 0 for launch in series) for series in (numerator, denominator)]
    if paired and counts[0] == counts[1] == len(numerator) == len(denominator):
        return _ratio_within_launches(numerator, denominator, seed)
    above = bootstrap_medians(numerator, seed)
    below = bootstrap_medians(denominator, seed + 1)
    low, high = interval(above / np.maximum(below, 1e-9))
    value = float(np.median(np.concatenate(list(numerator)))) / max(
        float(np.median(np.concatenate(list(denominator)))), 1e-9
    )
    return Ratio(value, min(low, value), max(high, value))


def _ratio_within_launches(
    numerator: Sequence[Floats], denominator: Sequence[Floats], seed: int
) -> Ratio:
    logs, replicates = [], []
    for index, (above, below) in enumerate(zip(numerator, denominator, strict=True)):
        logs.append(np.log(max(float(np.median(above)), 1e-9) / max(float(np.median(below)), 1e-9)))
        medians = [
            np.maximum(bootstrap_medians([launch], seed + 2 * index + place), 1e-9)
            for place, launch in enumerate((above, below))
        ]
        replicates.append(np.log(medians[0] / medians[1]))
    rng = np.random.default_rng(seed + 2 * len(logs))
    picks = rng.integers(len(logs), size=(len(logs), BOOTSTRAP_RESAMPLES))
    drawn = np.take_along_axis(np.array(replicates), picks, axis=0)
    low, high = interval(np.exp(drawn.mean(axis=0)))
    value = float(np.exp(np.mean(logs)))
    return Ratio(value, min(low, value), max(high, value))

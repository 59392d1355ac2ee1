# SPDX-License-Identifier: BSD-3-Clause
"""Shows the progress of a run: a bar with the remaining time on a terminal, plain lines
elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

_REDRAW_S: Final = 0.5
# The share of a run from which its own pace alone decides, and not the plan.
_PACE_KNOWN: Final = 0.3


def say(console: Console, text: str) -> None:
    """Prints a line as it is, without wrapping or colours."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


class RunProgress:
    """Counts planned seconds. Redraws only in `tick`, at most twice a second: no extra thread runs
    beside what is measured."""

    def __init__(self, console: Console, planned_s: float) -> None:
        self._console = console
        self._planned_s = max(planned_s, 0.1)
        self._done_s = 0.0
        self._step_s = 0.0
        self._part = 0.0
        self._began = time.monotonic()
        self._drawn = 0.0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} % done, {task.fields[left]} left"),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task(
            "", total=self._planned_s, left=format_duration(self._planned_s)
        )

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    @property
    def _now_s(self) -> float:
        """Planned seconds that are done."""
        return self._done_s + self._part * self._step_s

    @property
    def left_s(self) -> float:
        """The remaining time: as planned at first, by the observed pace later."""
        elapsed = time.monotonic() - self._began
        left = self._planned_s - self._now_s
        pace = elapsed / self._now_s if self._now_s > 0 else 1.0
        weight = min(self._now_s / self._planned_s / _PACE_KNOWN, 1.0)
        return left * (pace * weight + 1 - weight)

    def begin(self, text: str, seconds: float) -> None:
        """Begins a step that is planned to take so long."""
        self._step_s, self._part = seconds, 0.0
        if self._console.is_terminal:
            self._bar.update(self._task, description=text)
            self._draw(True)
        else:
            share = self._now_s / self._planned_s
            self._console.print(
                f"{text} … ({share:.0%} done, about {format_duration(self.left_s)} left)",
                soft_wrap=True, highlight=False, markup=False,
            )  # fmt: skip

    def advance_to(self, part: float) -> None:
        """This part of the step is done."""
        self._part = max(self._part, min(part, 1.0))
        self._draw(False)

    def end(self) -> None:
        """The step is done."""
        self._done_s += self._step_s
        self._step_s = self._part = 0.0
        self._draw(False)

    def note(self, text: str) -> None:
        """Prints a line about a problem."""
        self._console.print(f"  {text}", soft_wrap=True, highlight=False, markup=False)

    def tick(self) -> None:
        """Redraws if it is time."""
        self._draw(False)

    def _draw(self, at_once: bool) -> None:
        now = time.monotonic()
        if self._console.is_terminal and (at_once or now - self._drawn >= _REDRAW_S):
            self._drawn = now
            self._bar.update(self._task, completed=self._now_s, left=format_duration(self.left_s))
            self._bar.refresh()


def format_duration(seconds: float) -> str:
    """ "45 s", "3 min 20 s", "1 h 5 min"."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"

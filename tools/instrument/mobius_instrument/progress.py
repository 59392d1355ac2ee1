# SPDX-License-Identifier: BSD-3-Clause
"""Shows the progress of a run: a bar with the remaining time on a terminal, plain lines
elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

_REDRAW_S: Final = 0.5


class RunProgress:
    """Counts cells. Redraws only in `tick`, at most twice a second: no extra thread runs beside the
    probes."""

    def __init__(self, console: Console, cells: int, estimate_s: float) -> None:
        self._console = console
        self._cells = cells
        self._estimate_s = estimate_s
        self._done = 0
        self._began = time.monotonic()
        self._drawn = 0.0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cells, {task.fields[left]} left"),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=cells, left=format_duration(estimate_s))

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
    def left(self) -> int:
        """Cells not yet measured."""
        return self._cells - self._done

    @property
    def left_s(self) -> float:
        """The remaining time: the estimate at first, the observed pace later."""
        elapsed = time.monotonic() - self._began
        share = self._done / max(self._cells, 1)
        by_plan = self._estimate_s * (1 - share)
        by_pace = elapsed / share * (1 - share) if share else by_plan
        return by_pace * share + by_plan * (1 - share) if share < 0.5 else by_pace

    def begin_launch(self, text: str) -> None:
        """Names the current launch."""
        if self._console.is_terminal:
            self._bar.update(self._task, description=text)
            self._draw(True)
        else:
            self._console.print(
                f"{text} … ({self._done} of {self._cells} cells done,"
                f" about {format_duration(self.left_s)} left)",
                soft_wrap=True, highlight=False, markup=False,
            )  # fmt: skip

    def note(self, text: str) -> None:
        """Prints a line about a problem."""
        self._console.print(f"  {text}", soft_wrap=True, highlight=False, markup=False)

    def advance(self, cells: int) -> None:
        """Counts cells as done."""
        self._done += cells
        self._bar.update(self._task, completed=self._done)
        self._draw(False)

    def add(self, cells: int) -> None:
        """Adds cells to the plan."""
        self._cells += cells
        self._bar.update(self._task, total=self._cells)

    def tick(self) -> None:
        """Redraws if it is time."""
        self._draw(False)

    def _draw(self, at_once: bool) -> None:
        now = time.monotonic()
        if self._console.is_terminal and (at_once or now - self._drawn >= _REDRAW_S):
            self._drawn = now
            self._bar.update(self._task, left=format_duration(self.left_s))
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

# SPDX-License-Identifier: BSD-3-Clause
"""How far a soak is: a bar at a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

LINE_EVERY_S = 30.0


class Progress:
    """Shows jobs, kills and failures, and how many jobs run in a second."""

    def __init__(self, deadline: float | None, most: int | None) -> None:
        self._begin = time.monotonic()
        self._last_line = self._begin
        self._deadline = deadline
        self._most = most
        self._console = Console()
        self._bar = Bar(
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        total = most if most is not None else (deadline or self._begin) - self._begin
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Prints a line of its own."""
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, jobs: int, on_hosts: int, kills: int, failures: int) -> None:
        """Tells the numbers so far."""
        now = time.monotonic()
        rate = jobs / max(now - self._begin, 0.001)
        text = (
            f"{jobs} jobs ({on_hosts} on virtual hosts), {kills} kills, {failures} failures, "
            f"{rate:.1f} jobs/s"
        )
        done = jobs if self._most is not None else now - self._begin
        self._bar.update(self._task, completed=done, description=text)
        if not self._console.is_terminal and now - self._last_line >= LINE_EVERY_S:
            self._last_line = now
            self.say(text)

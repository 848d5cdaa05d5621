"""Progress of an import: bars on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from portal.processes.importing.tally import Tally
from portal.services.documents.intake.importing import Outcome

_LINE_EVERY_S = 5.0
_FRAMES_PER_SECOND = 4
_MAX_FAILURES = 20


class Display:
    """Shows a tally as it grows."""

    def __init__(self, console: Console, tally: Tally, *, reads: bool) -> None:
        """Show storing, and with `reads` also reading."""
        self._console, self._tally, self._reads = console, tally, reads
        self._started = self._line_at = time.monotonic()
        self._progress: Progress | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the tally while the context is open."""
        if not self._console.is_terminal:
            yield
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(
            *columns, console=self._console, refresh_per_second=_FRAMES_PER_SECOND
        ) as self._progress:
            self._progress.add_task("storing", total=None)
            if self._reads:
                self._progress.add_task("reading", total=None)
            yield
            self.renew(is_whole=True)

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def renew(self, *, is_whole: bool) -> None:
        """Refresh the display; `is_whole` is true once all files have been found."""
        tally = self._tally
        if self._progress is None:
            self._print_line(is_whole=is_whole)
            return
        storing, *reading = self._progress.task_ids
        total = tally.found if is_whole else None
        self._progress.update(storing, completed=tally.taken, total=total)
        for task in reading:
            total = tally.to_read if is_whole else None
            self._progress.update(task, completed=tally.read, total=total)

    def _print_line(self, *, is_whole: bool) -> None:
        now, tally = time.monotonic(), self._tally
        if now < self._line_at + _LINE_EVERY_S:
            return
        self._line_at = now
        of = f"{tally.found:,}" if is_whole else f"{tally.found:,} and more"
        line = f"stored {tally.taken:,} of {of}"
        if self._reads:
            line += f"; read {tally.read:,} of {tally.to_read:,}, {tally.chunks:,} passages"
        self.say(line)

    def summarise(self) -> None:
        """Print the summary."""
        tally, outcomes = self._tally, self._tally.outcomes
        seconds = time.monotonic() - self._started
        for line in tally.failures[:_MAX_FAILURES] if len(tally.failures) > 1 else ():
            self.say(f"  {line}")
        if (more := len(tally.failures) - _MAX_FAILURES) > 0:
            self.say(f"  and {more:,} more, which are named above")
        again = outcomes[Outcome.AGAIN]
        parts = [
            f"{outcomes[Outcome.STORED]:,} stored",
            f"{outcomes[Outcome.PRESENT]:,} already there",
            *([f"{again:,} tried again"] if again else []),
            f"{len(tally.failures):,} failed",
        ]
        self.say(
            f"{', '.join(parts)}, in {duration(seconds)} ({tally.taken / seconds:.1f} files/s)"
        )
        if tally.read:
            speed = f"{tally.read / seconds:.1f} files/s, {tally.chunks / seconds:.1f} passages/s"
            self.say(f"{tally.ready:,} became ready with {tally.chunks:,} passages ({speed})")
        if tally.waiting:
            self.say(f"{len(tally.waiting):,} are still to be read")


def duration(seconds: float) -> str:
    """Format seconds, such as 42 s, 3 min 20 s or 2 h 5 min."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"

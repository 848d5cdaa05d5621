"""The console of commands, and its progress bar."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# Programs that read a table need every column in full.
_WIDTH_WITHOUT_TERMINAL = 200


def open_console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDTH_WITHOUT_TERMINAL
    return console


def open_progress(console: Console, description: str = "{task.description}") -> Progress:
    return Progress(
        TextColumn(description, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )

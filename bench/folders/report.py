"""Tables of the figures about folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Rows = list[list[str]]


def corpus_text(folders: dict[str, Any]) -> str:
    return (
        f"{folders['documents']:,} documents in {folders['folders']:,} folders, "
        f"{folders['groups']} groups; changes of {folders['changed']:,} documents."
    )


def read_rows(folders: dict[str, Any]) -> Rows:
    """Return the times of lists, trees and searches without folders and with them."""
    return [
        ["read", "without folders, p50 ms", "p95 ms", "with folders, p50 ms", "p95 ms"],
        *([one["read"], *_times(one, ("p50_ms", "p95_ms"), digits=0)] for one in folders["reads"]),
    ]


def change_rows(folders: dict[str, Any]) -> Rows:
    """Return the seconds of changes of many documents, and of undoing them."""
    return [
        ["change", "without folders, s", "undo, s", "with folders, s", "undo, s"],
        *([one["change"], *_times(one, ("s", "undo_s"), digits=1)] for one in folders["changes"]),
    ]


def _times(measured: dict[str, Any], names: Sequence[str], *, digits: int) -> list[str]:
    """Return the named figures without folders, then with them; empty if not measured."""
    return [
        f"{measured[at][name]:.{digits}f}" if at in measured else ""
        for at in ("flat", "filed")
        for name in names
    ]


def meanwhile_rows(folders: dict[str, Any]) -> Rows:
    """Return the times of searches alone, and while documents move."""
    meanwhile = folders["meanwhile"]
    moves = f"while {folders['changed']:,} move ({meanwhile['move_s']:g} s each)"
    return [
        ["searches", "p50 ms", "p95 ms"],
        *(
            [words, *(f"{meanwhile[at][name]:.0f}" for name in ("p50_ms", "p95_ms"))]
            for at, words in (("alone", "alone"), ("meanwhile", moves))
        ),
    ]

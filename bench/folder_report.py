"""Tables of the figures about folders."""

from __future__ import annotations

from typing import Any

Rows = list[list[str]]


def corpus_text(folders: dict[str, Any]) -> str:
    return (
        f"{folders['documents']:,} documents in {folders['folders']:,} folders, "
        f"{folders['groups']} groups; changes of {folders['changed']:,} documents."
    )


def read_rows(folders: dict[str, Any]) -> Rows:
    """Return the times of lists, trees and searches without folders and with them."""
    rows = [["read", "without folders, p50 ms", "p95 ms", "with folders, p50 ms", "p95 ms"]]
    for one in folders["reads"]:
        times = [
            f"{one[at][name]:.0f}" if at in one else ""
            for at in ("flat", "filed")
            for name in ("p50_ms", "p95_ms")
        ]
        rows.append([one["read"], *times])
    return rows


def change_rows(folders: dict[str, Any]) -> Rows:
    """Return the seconds of changes of many documents, and of undoing them."""
    rows = [["change", "without folders, s", "undo, s", "with folders, s", "undo, s"]]
    for one in folders["changes"]:
        times = [
            f"{one[at][name]:.1f}" if at in one else ""
            for at in ("flat", "filed")
            for name in ("s", "undo_s")
        ]
        rows.append([one["change"], *times])
    return rows


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

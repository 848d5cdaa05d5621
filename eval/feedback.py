"""Feedback on answers: `./run eval --feedback`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import text

from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres
from portal.services import Services
from portal.settings import Settings, load_settings

# The question of an answer is the last one before it.
_JUDGED = text(
    """
    SELECT a.feedback = 'useful' AS is_useful, a.status,
           COALESCE(a.retrieval ->> 'chat_provider', '') AS provider,
           COALESCE(a.retrieval ->> 'chat_model', '') AS model,
           (SELECT q.content FROM messages q
            WHERE q.conversation_id = a.conversation_id AND q.role = 'user'
              AND q.position < a.position
            ORDER BY q.position DESC LIMIT 1) AS question,
           best.confidence, COALESCE(best.document_ids, '{}') AS document_ids
    FROM messages a
    LEFT JOIN LATERAL (
        SELECT max(c.confidence) AS confidence,
               array_agg(CAST(c.document_id AS text) ORDER BY c.marker)
                   FILTER (WHERE c.was_cited AND c.document_id IS NOT NULL) AS document_ids
        FROM citations c WHERE c.message_id = a.id
    ) best ON true
    WHERE a.role = 'assistant' AND a.feedback IS NOT NULL
    ORDER BY a.position
    """
)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A rated answer. `confidence` is that of its best source, None without any; `document_ids` are
    its citations, by marker."""

    is_useful: bool
    status: str
    provider: str
    model: str
    question: str
    confidence: float | None
    document_ids: tuple[str, ...]


# Bounds of the confidence of an answer's best source.
BANDS = ((0.0, 0.5), (0.5, 0.8), (0.8, 1.0))


def run(console: Console, file: Path | None) -> int:
    """Print a summary of the feedback on this portal's answers; write each answer to `file`."""
    with _this_portal(load_settings(log_level="error")) as services:
        answers = judged(services)
    console.print(table(summary(answers)) if answers else "No answer was judged yet.")
    if file is not None:
        file.write_text(json.dumps(as_lines(answers), indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0


@contextmanager
def _this_portal(settings: Settings) -> Iterator[Services]:
    """Open the portal of these settings; start its embedded database if it has no other."""
    server = None if settings.database_url else EmbeddedPostgres(settings.data_dir)
    services = build_services(settings, database_url=server.start() if server else None)
    try:
        yield services
    finally:
        services.database.dispose()
        if server is not None:
            server.leave()


def judged(services: Services) -> list[JudgedAnswer]:
    """Return every rated answer of all users, in the order in which they were asked for."""
    with services.database.begin() as session:
        return [
            JudgedAnswer(**dict(row) | {"document_ids": tuple(row["document_ids"])})
            for row in session.execute(_JUDGED).mappings()
        ]


def summary(answers: Iterable[JudgedAnswer]) -> dict[str, dict[str, Any]]:
    """Count the judged and the useful answers of each chat model, also by the confidence of the
    best source."""
    figures: dict[str, dict[str, Any]] = {}
    for answer in answers:
        name = f"{answer.provider} {answer.model}".strip()
        one = figures.setdefault(name, {"judged": 0, "useful": 0, "bands": {}})
        band = one["bands"].setdefault(_band(answer.confidence), {"judged": 0, "useful": 0})
        for counts in (one, band):
            counts["judged"] += 1
            counts["useful"] += answer.is_useful
    return figures


def _band(confidence: float | None) -> str:
    if confidence is None:
        return "no source"
    low, high = next((band for band in BANDS if confidence < band[1]), BANDS[-1])
    return f"{low:.1f}–{high:.1f}"


def table(figures: dict[str, dict[str, Any]]) -> Table:
    """Return the shares of useful answers as a table, one chat model per row."""
    shown = Table(title="Answers found useful, of those judged")
    shown.add_column("chat model")
    columns = ["no source", *(f"{low:.1f}–{high:.1f}" for low, high in BANDS)]
    for heading in ("all", *columns):
        shown.add_column(heading, justify="right")
    for name, one in sorted(figures.items()):
        cells = [one, *(one["bands"].get(column) for column in columns)]
        shown.add_row(name, *(_share(cell) for cell in cells))
    return shown


def _share(counts: dict[str, Any] | None) -> str:
    if not counts or not counts["judged"]:
        return "–"
    return f"{counts['useful']} of {counts['judged']}"


def as_lines(answers: Sequence[JudgedAnswer]) -> list[dict[str, Any]]:
    """Return questions with the documents that their answers cite, as `--json` writes them."""
    return [
        {
            "question": one.question,
            "cited": list(one.document_ids),
            "useful": one.is_useful,
            "model": one.model,
            "confidence": one.confidence,
        }
        for one in answers
    ]

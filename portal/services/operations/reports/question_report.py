"""Questions without a good answer, for administrators, and the evaluation set made from them.

Questions are shown without their users; other conversations are not read.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from tempfile import TemporaryFile
from typing import IO
from uuid import UUID

from portal.domain.people import User, require_admin
from portal.errors import NotFound, existing
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.intake import disk_space
from portal.store.operations import questions as question_store
from portal.store.operations.questions import CitedDocument, ReportedQuestion, SavedQuestion, Week

PERIODS = (7, 30, 90)
MAX_GOLD_CHARACTERS = 500
# A comma inside a number is not a separator.
_BETWEEN_WORDS = re.compile(r"[;；，、\n]|,(?!\d{3})")


class Problem(StrEnum):
    """The reason why an answer needs attention."""

    UNANSWERED = "unanswered"
    MODEL_FAILED = "model_failed"
    LOW_CONFIDENCE = "low_confidence"
    NOT_USEFUL = "not_useful"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Report:
    """The answers of the last `days` that need attention."""

    days: int
    weeks: Sequence[Week]
    questions: Sequence[ReportedQuestion]
    documents: Sequence[CitedDocument]
    kept: Sequence[SavedQuestion]


def show(services: Services, user: User, *, days: int, problem: Problem | None) -> Report:
    """Return the report of the last `days`. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        return Report(
            days,
            question_store.count_by_week(session, days=days),
            question_store.list_questions(session, days=days, problem=problem or ""),
            question_store.list_cited(session, days=days),
            question_store.list_saved_questions(session),
        )


def keep(services: Services, user: User, message_id: UUID, gold: str) -> None:
    """Add the question of an answer that needs attention to the evaluation set. `gold` are the
    words that a right answer contains, separated by commas; none if the documents do not answer it.
    Administrators only. Raises NotFound for any other message."""
    require_admin(user)
    with services.database.begin() as session:
        found = existing(question_store.find_question(session, message_id, days=max(PERIODS)))
        question_store.save_question(session, message_id, found.question, _words(gold))


def _words(gold: str) -> list[str]:
    pieces = _BETWEEN_WORDS.split(gold[:MAX_GOLD_CHARACTERS])
    return [word for piece in pieces if (word := " ".join(piece.split()))]


def remove(services: Services, user: User, message_id: UUID) -> None:
    """Remove a question from the evaluation set. Administrators only. Raises NotFound."""
    require_admin(user)
    with services.database.begin() as session:
        if not question_store.remove_question(session, message_id):
            raise NotFound


def export(services: Services, user: User) -> IO[bytes]:
    """Return the evaluation set as a ZIP file that `./run eval --answers --data` reads once
    unpacked: the questions, and the documents that were found for them. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        kept = question_store.list_saved_questions(session)
    file = TemporaryFile(dir=disk_space.temporary_dir(services.settings))  # noqa: SIM115 - the caller closes it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("questions.jsonl", "".join(map(_line, kept)))
        documents = sorted({one for question in kept for one in question.document_ids})
        for number, document_id in enumerate(documents, 1):
            _add_document(services, user, archive, document_id, number)
    file.seek(0, io.SEEK_SET)
    return file


def _line(kept: SavedQuestion) -> str:
    values = {"id": str(kept.message_id), "kind": "fact", "question": kept.question}
    row = values | ({"gold": list(kept.gold)} if kept.gold else {"kind": "absent"})
    row |= {"after": list(kept.after)} if kept.after else {}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _add_document(
    services: Services, user: User, archive: zipfile.ZipFile, document_id: UUID, number: int
) -> None:
    try:
        original = library.open_file(services, user, document_id)
    except NotFound:
        return  # Deleted meanwhile.
    # Numbered, because two documents may have files with the same name.
    with archive.open(f"{number:03}-{original.file_name}", "w") as entry:
        for part in original.parts:
            entry.write(part)

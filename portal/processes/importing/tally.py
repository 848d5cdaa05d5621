"""Progress of an import: what was stored, read and refused so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from portal.domain.documents import DocumentStatus, Visibility
from portal.services.documents.intake.importing import (
    MAX_FOLLOWED,
    ImportedFile,
    Outcome,
    display_name,
    failure_words,
)
from portal.store.documents.ingestion.importing import Progress

_SEEN_BY = {
    Visibility.SHARED: "already exists, visible to everyone",
    Visibility.PRIVATE: "already exists, visible only to its owner",
}


@dataclass(slots=True)
class Tally:
    """Counts of files, their documents and chunks. `found` grows while folders are scanned;
    `waiting` are documents with their files, in reading order."""

    found: int = 0
    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    waiting: dict[UUID, Path] = field(default_factory=dict)
    ready: int = 0
    failed: int = 0
    failures: list[str] = field(default_factory=list)
    chunks_of_ready: int = 0
    chunks_in_hand: int = 0

    @property
    def taken(self) -> int:
        """Return how many files were stored or refused."""
        return sum(self.outcomes.values())

    @property
    def read(self) -> int:
        """Return how many awaited documents are ready or failed."""
        return self.ready + self.failed

    @property
    def to_read(self) -> int:
        """Return how many documents are expected, one for each file not stored yet."""
        return self.read + len(self.waiting) + max(0, self.found - self.taken)

    @property
    def chunks(self) -> int:
        return self.chunks_of_ready + self.chunks_in_hand

    def take(self, file: ImportedFile) -> str | None:
        """Count a file; return a line for one that was refused or has another visibility."""
        self.outcomes[file.outcome] += 1
        self.found = max(self.found, self.taken)
        if file.document_id is not None and not file.is_ready:
            # Several files may have the same content: the first one names the document.
            self.waiting.setdefault(file.document_id, file.path)
        if file.error is not None:
            return self._fail(file.path, str(file.error))
        return f"{display_path(file.path)}: {_SEEN_BY[file.seen_by]}" if file.seen_by else None

    def follow(self, found: Mapping[UUID, Progress]) -> list[str]:
        """Count finished documents; return a line for each that failed."""
        lines = []
        self.chunks_in_hand = 0
        for document_id, path in list(self.waiting.items())[:MAX_FOLLOWED]:
            one = found.get(document_id)
            if one is not None and one.status not in (DocumentStatus.READY, DocumentStatus.FAILED):
                self.chunks_in_hand += one.chunks
                continue
            del self.waiting[document_id]
            if one is None:
                continue  # Deleted meanwhile.
            if one.status is DocumentStatus.READY:
                self.ready += 1
                self.chunks_of_ready += one.chunks
            else:
                self.failed += 1
                words = failure_words(one.failure) if one.failure else str(one.status)
                lines.append(self._fail(path, words))
        return lines

    def _fail(self, path: Path, reason: str) -> str:
        line = f"{display_path(path)}: {reason}"
        self.failures.append(line)
        return line


def display_path(path: Path) -> str:
    """Format a path on one line, without control characters for a terminal."""
    name = display_name(str(path))
    return "".join(character if character.isprintable() else "\ufffd" for character in name)

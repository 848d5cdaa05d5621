"""The progress that an import reports: its counts and messages."""

from __future__ import annotations

import io
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from rich.console import Console

from portal.domain.documents import DocumentStatus, Failure, Visibility
from portal.errors import EmptyFile
from portal.processes.importing import display as displays
from portal.processes.importing.display import Display, duration
from portal.processes.importing.tally import Tally, display_path
from portal.services.documents.intake.importing import ImportedFile, Outcome
from portal.store.documents.ingestion.importing import Progress

READY, FAILED, PROCESSING = (
    DocumentStatus.READY,
    DocumentStatus.FAILED,
    DocumentStatus.PROCESSING,
)


def progress(id_: UUID, status: DocumentStatus, chunks: int = 0) -> tuple[UUID, Progress]:
    failure = Failure("empty_file", {"name": "b.txt"}) if status is FAILED else None
    return id_, Progress(id_, status, failure, chunks)


def test_tally_counts_each_file_once() -> None:
    tally = Tally(found=7)
    ids = [uuid4() for _ in range(3)]
    for number, id_ in enumerate(ids):
        assert tally.take(ImportedFile(Path(f"{number}.txt"), Outcome.STORED, id_)) is None
    tally.take(ImportedFile(Path("there.txt"), Outcome.PRESENT, uuid4(), is_ready=True))
    refused = tally.take(
        ImportedFile(Path("e.txt"), Outcome.REFUSED, error=EmptyFile(name="e.txt"))
    )
    assert refused is not None
    assert refused.startswith("e.txt: ")
    shared = ImportedFile(
        Path("s.txt"), Outcome.PRESENT, uuid4(), is_ready=True, seen_by=Visibility.SHARED
    )
    assert tally.take(shared) == "s.txt: already exists, visible to everyone"
    assert (tally.taken, tally.read, tally.to_read) == (6, 0, 4)
    said = tally.follow(dict([progress(ids[0], READY, 5), progress(ids[1], PROCESSING, 2)]))
    # The third document was deleted meanwhile.
    assert said == []
    assert (tally.ready, tally.failed, tally.chunks, len(tally.waiting)) == (1, 0, 7, 1)
    said = tally.follow(dict([progress(ids[1], FAILED)]))
    assert len(said) == 1
    assert said[0].startswith("1.txt: ")
    assert "b.txt" in said[0]
    assert (tally.ready, tally.failed, tally.chunks, tally.waiting) == (1, 1, 5, {})
    assert len(tally.failures) == 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_are_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_names_of_any_bytes_are_shown_on_one_line() -> None:
    assert display_path(Path("图书/caf\udce9.txt")) == "图书/caf\ufffd.txt"
    assert display_path(Path("a\n\x1b[31mred\u202e.txt")) == "a\ufffd\ufffd[31mred\ufffd.txt"


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "log"])
def test_display_shows_the_progress_of_an_import(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displays, "_LINE_EVERY_S", 0.0)
    written = io.StringIO()
    console = Console(file=written, force_terminal=is_terminal, width=120)
    tally, id_ = Tally(found=3), uuid4()
    display = Display(console, tally, reads=True)
    with display.shown():
        tally.take(ImportedFile(Path("a.txt"), Outcome.STORED, id_))
        tally.take(ImportedFile(Path("b.txt"), Outcome.STORED, uuid4()))
        tally.follow(dict([progress(id_, READY, 4)]))
        display.renew(is_whole=True)
        display.say("c.txt :smile:: [bold]it is gone")
    display.summarise()
    said = written.getvalue()
    assert "c.txt :smile:: [bold]it is gone\n" in said
    assert "files/s" in said
    assert "passages/s" in said
    assert ("\x1b[" in said) is is_terminal
    assert ("stored 2 of 3" in said) is not is_terminal
    assert "2 stored, 0 already there, 0 failed" in said
    assert "1 became ready with 4 passages" in said

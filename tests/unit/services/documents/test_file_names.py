"""File names: as they were written, without characters that mislead."""

from __future__ import annotations

import pytest

from portal.services.documents.intake.uploads import clean_file_name, title_of


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("می\u200cخواهم.txt", "می\u200cخواهم.txt"),  # Persian: not to be joined.
        ("क्\u200dष.txt", "क्\u200dष.txt"),  # Hindi: the half form.
        ("👩\u200d👩\u200d👧.md", "👩\u200d👩\u200d👧.md"),
        ("\ue000外字.txt", "\ue000外字.txt"),  # Private use: signs that fonts in offices have.
        ("gnp.\u202etxt\u202c", "gnp.txt"),
        ("a\u2066b\u200e\u200b\ufeff\u00ad.txt", "ab.txt"),
        ("nul\0, line\n, bell\a, \x9f.txt", "nul, line, bell, .txt"),
        ("lone \udc80.txt", "lone .txt"),
        ("\u200d\u200c", "unnamed"),
        ("..\u200d..", "unnamed"),
        ("C:\\letters\\a.txt", "a.txt"),
    ],
)
def test_names_keep_what_is_written_and_lose_what_misleads(name: str, shown: str) -> None:
    assert clean_file_name(name) == shown


def test_title_can_be_seen() -> None:
    assert title_of("می\u200cخواهم.txt") == "می\u200cخواهم"
    assert title_of("\u200d.txt") == "\u200d.txt"

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.services.documents.intake.finding_files import find_files
from portal.services.documents.intake.uploads import clean_file_name, title_of


def test_known_files_are_found_in_order(tmp_path: Path) -> None:
    for name in ("b/two.MD", "a/one.txt", "a/deep/er/three.pdf", "c.html", "song.mp3"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / ".hidden.txt").write_bytes(b"x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "notes.txt").write_bytes(b"x")
    (tmp_path / "link.txt").symlink_to(tmp_path / "c.html")
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.txt")
    found = [str(path.relative_to(tmp_path)) for path in find_files([tmp_path])]
    assert found == ["a/deep/er/three.pdf", "a/one.txt", "b/two.MD", "c.html"]
    named = [tmp_path / "song.mp3", tmp_path / "link.txt", tmp_path / "gone.txt"]
    assert list(find_files(named)) == named
    others: list[str] = []
    list(find_files([tmp_path], is_unsupported=lambda path: others.append(path.name)))
    assert others == ["song.mp3"]


def test_files_are_yielded_while_folders_are_still_being_listed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_bytes(b"x")
    found = find_files([tmp_path])
    next(found)
    # A file added to a folder that is not yet listed is still found.
    (tmp_path / "b" / "2.txt").write_bytes(b"x")
    assert [path.name for path in found] == ["1.txt", "2.txt"]


def test_unreadable_folder_is_reported_and_skipped(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_bytes(b"x")
    told: list[str] = []
    found = find_files([tmp_path], cannot_read=lambda path, _error: told.append(path.name))
    next(found)
    (tmp_path / "b" / "1.txt").unlink()
    (tmp_path / "b").rmdir()
    assert [path.parent.name for path in found] == ["c"]
    assert told == ["b"]


def test_folders_may_be_nested_deeper_than_the_recursion_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    Path("end.txt").write_bytes(b"x")
    assert [path.name for path in find_files([tmp_path])] == ["end.txt"]
    Path("end.txt").unlink()
    for _ in range(1200):  # Pytest's own cleanup may be recursive.
        os.chdir("..")
        Path("d").rmdir()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("می\u200cخواهم.txt", "می\u200cخواهم.txt"),  # Persian: keeps letters apart.
        ("क्\u200dष.txt", "क्\u200dष.txt"),  # Hindi: the half form.
        ("👩\u200d👩\u200d👧.md", "👩\u200d👩\u200d👧.md"),
        ("\ue000外字.txt", "\ue000外字.txt"),  # Private use: characters of office fonts.
        ("gnp.\u202etxt\u202c", "gnp.txt"),
        ("a\u2066b\u200e\u200b\ufeff\u00ad.txt", "ab.txt"),
        ("nul\0, line\n, bell\a, \x9f.txt", "nul, line, bell, .txt"),
        ("lone \udc80.txt", "lone .txt"),
        ("\u200d\u200c", "unnamed"),
        ("..\u200d..", "unnamed"),
        ("C:\\letters\\a.txt", "a.txt"),
    ],
)
def test_names_keep_their_letters_and_lose_misleading_characters(name: str, shown: str) -> None:
    assert clean_file_name(name) == shown


def test_title_is_never_invisible() -> None:
    assert title_of("می\u200cخواهم.txt") == "می\u200cخواهم"
    assert title_of("\u200d.txt") == "\u200d.txt"

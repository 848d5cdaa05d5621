from __future__ import annotations

from pathlib import Path

import pytest

from bench import ingest
from bench.ingest import Watch
from bench.ingest.files import sheets
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.ingest.media_types import sniff_file


def test_nested_time_counts_only_for_the_inner_part(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(ingest.time, "perf_counter", lambda: now)
    watch = Watch()
    inner = watch.timed("inner", lambda: work(2.0))
    watch.timed("outer", lambda: (work(0.5), inner(), inner()))()
    assert watch.seconds == {"inner": 4.0, "outer": 0.5}


def test_sheets_are_the_same_in_every_run_and_can_be_read(tmp_path: Path) -> None:
    made = sheets(40)
    assert made == sheets(40)
    assert {(one.kind, one.language) for one in made} >= {("pdf", "zh"), ("pdf", "en")}
    for kind, language in (("pdf", "zh"), ("pdf", "en"), ("md", "zh")):
        sheet = next(one for one in made if (one.kind, one.language) == (kind, language))
        path = sheet.write(tmp_path)
        with path.open("rb") as file:
            media_type = sniff_file(file, path.name)
        text = extract(FileToRead(path, path.name), media_type)
        assert squeezed(sheet.chunks[-1])[-40:] in squeezed(text.text)
        assert kind != "pdf" or len(text.pages) == sheet.pages


def squeezed(words: str) -> str:
    return "".join(words.split())

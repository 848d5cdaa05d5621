"""Hostile files in a portal of real processes: all end as they must, and nothing else suffers."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.factories import files
from tests.factories.files.hostile import (
    READY,
    Hostile,
    hostile_files,
    pdf_bomb,
    pdf_of_short_lines,
)
from tests.factories.servers.endpoint import wait
from tests.faults.world import World

_ENDS_WITHIN_S = 600.0
_LONG_ENDS_WITHIN_S = 1800.0
_MAX_MEMORY_KB = 1 << 20
_BOUNDARY = "a-boundary-of-our-own"
# Where text recognition is installed these take it a minute; it has tests of its own.
_WITHOUT_TEXT = {"scan.pdf", "partly.pdf", "loop.pdf"}
_TOO_MUCH = "extraction_too_large|too_much_in_one|unpacks_to_too_much|extraction_timed_out"
_REFUSED_BOMB = "broken_pdf|unpacks_to_too_much|extraction_timed_out|no_text_in_pdf"


def heavy_files() -> Iterator[Hostile]:
    """Return the files that take minutes; an outcome may be one of several."""
    yield Hostile("bomb.pdf", pdf_bomb, _REFUSED_BOMB)
    yield Hostile("line-5mb.txt", b"word " * 1_000_000, says="word word")
    yield Hostile("pages.pdf", _two_thousand_pages, says="Page 1999 of many.")
    yield Hostile("deep-1m.html", b"<div><i>" * 500_000 + b"deep words", says="deep words")
    yield Hostile("tags-2m.html", b"<p>x" * 700_000, "too_much_in_one")
    yield Hostile("items-4m.md", b"- a\n" * 1_000_000, _TOO_MUCH)
    yield Hostile("front-20m.md", b"---\n" + b"\n" * 20_000_000 + b"words", _TOO_MUCH)
    yield Hostile("lines-3m.pdf", pdf_of_short_lines, _TOO_MUCH)


def _two_thousand_pages(path: Path) -> Path:
    pages = [[f"Page {number} of many. {'More words. ' * 40}"] for number in range(2_000)]
    return files.write_pdf(path, pages, font="Helvetica")


class Watch:
    """Asks /health five times a second, and looks how much memory the workers take."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._ask, self._look)]
        self.codes: Counter[int] = Counter()
        self.worst_s = 0.0
        self.peak_kb = 0

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._over.wait(0.2):
            started = time.monotonic()
            try:
                code = self._world.client.get("/health").status_code
            except httpx.TransportError:
                code = 0
            self.worst_s = max(self.worst_s, time.monotonic() - started)
            self.codes[code] += 1

    def _look(self) -> None:
        """Measure a worker and each of its readers, which have their own bounds."""
        while not self._over.wait(0.1):
            for worker in self._world.workers:
                for process in _with_children(worker.pid):
                    self.peak_kb = max(self.peak_kb, _peak_kb(process.pid))


def _with_children(pid: int) -> list[psutil.Process]:
    try:
        worker = psutil.Process(pid)
        return [worker, *worker.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _peak_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(peak[1]) if peak else 0


@pytest.fixture
def world(run_dir: Path) -> Iterator[World]:
    world = World(run_dir / "hostile", workers=1)
    yield world
    world.stop()


@pytest.mark.slow
def test_hostile_folder_holds_nothing_up(world: World, tmp_path: Path, is_long: bool) -> None:
    hostile = [file for file in hostile_files() if is_long or file.name not in _WITHOUT_TEXT]
    hostile += heavy_files() if is_long else ()
    ended: dict[str, tuple[Hostile, str]] = {}
    sent: dict[str, Hostile] = {}
    with Watch(world) as watch:
        for file in hostile:
            answer = _send(world, file.name, file.data(tmp_path))
            if answer.status_code == httpx.codes.ACCEPTED:
                sent[str(answer.json()["documents"][0]["id"])] = file
            else:
                assert answer.status_code < 500, file.name[:40]
                ended[file.name] = file, str(answer.json()["error"]["code"])
        wait(
            lambda: world.unfinished() == 0,
            _LONG_ENDS_WITHIN_S if is_long else _ENDS_WITHIN_S,
            "a job is stuck",
        )
    found = world.rows("SELECT CAST(id AS text), status, error ->> 'code' FROM documents")
    assert {identifier for identifier, *_ in found} == set(sent)
    for identifier, status, code in found:
        file = sent[identifier]
        ended[file.name] = file, READY if status == READY else code
    unexpected = {
        name[:40]: outcome
        for name, (file, outcome) in ended.items()
        if outcome not in file.outcome.split("|")
    }
    assert unexpected == {}
    assert len(ended) == len(hostile)
    print(f"\n/health: {dict(watch.codes)}, worst {watch.worst_s:.2f} s")  # noqa: T201
    print(f"a worker or reader at most: {watch.peak_kb >> 10} MB")  # noqa: T201
    # On a machine that does all the other tests beside, the database may be called away once.
    assert set(watch.codes) <= ({200} if is_long else {200, 503})
    assert watch.peak_kb < _MAX_MEMORY_KB


def _send(world: World, name: str, content: bytes) -> httpx.Response:
    """Send names as browsers do: in UTF-8, with quotation marks and line ends by percent."""
    for sign, code in (('"', "%22"), ("\r", "%0D"), ("\n", "%0A")):
        name = name.replace(sign, code)
    header = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    body = f"--{_BOUNDARY}\r\n{header}\r\n\r\n".encode() + content
    return world.client.post(
        "/api/knowledge/documents",
        content=body + f"\r\n--{_BOUNDARY}--\r\n".encode(),
        headers={"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"},
    )

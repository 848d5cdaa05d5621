"""Text from outside stays on its line of the log, and cannot steer a terminal."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog
from gunicorn.config import Config

from portal.observability.gunicorn_log import GunicornLog
from portal.observability.logs import configure_logs
from portal.settings import load_settings

HOSTILE = {
    "line": "a\r\n2026-01-01T00:00:00Z [info] sign_in user=admin",
    "escape": "\x1b[2J\x1b]0;owned\x07",
    "c1": "\x9b2J\x85next",
    "delete": "\x7f",
    "bidi": "\u202egnp.exe\u2066",
    "separators": "a\u2028b\u2029c",
    "half a pair": "\ud800",
}
RAW = "".join(map(chr, [*range(10), *range(11, 32), *range(0x7F, 0xA0)]))
RAW += "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ud800"


@pytest.fixture(params=["console", "json"])
def written(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    configure_logs(load_settings(log_format=request.param))
    yield stream
    root.handlers = handlers
    root.setLevel(level)


@contextmanager
def only(stream: io.StringIO) -> Iterator[None]:
    """Keep log lines out of pytest's reports, which fail on a lone surrogate."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if getattr(handler, "stream", None) is stream]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root, "handlers", ours)
        yield


@pytest.mark.parametrize("kind", HOSTILE)
def test_control_characters_are_escaped(written: io.StringIO, kind: str) -> None:
    with only(written):
        structlog.get_logger("x").warning("event", path=HOSTILE[kind], many=[HOSTILE[kind]])
        structlog.get_logger("x").warning(HOSTILE[kind])
        logging.getLogger("library").warning("it said %s", HOSTILE[kind].replace("\n", "\r"))
    lines = written.getvalue().removesuffix("\n").split("\n")
    assert len(lines) == 3
    assert not set(RAW) & set("".join(lines)), lines


def test_json_decodes_to_what_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    try:
        configure_logs(load_settings(log_format="json"))
        structlog.get_logger("y").warning("event", path="a\\x1b\x9b\u202e中文")
        assert json.loads(stream.getvalue())["path"] == "a\\x1b\x9b\u202e中文"
    finally:
        root.handlers = handlers
        root.setLevel(level)


def test_traceback_keeps_its_lines(written: io.StringIO) -> None:
    message = "private" + chr(27)
    try:
        raise ValueError(message)
    except ValueError:
        structlog.get_logger("z").exception("failed")
    text = written.getvalue()
    assert "ValueError" in text
    assert "private" not in text
    assert "\x1b" not in text


def test_decoded_path_stays_on_its_line_of_the_access_log(tmp_path: Path) -> None:
    config = Config()
    config.set("accesslog", str(tmp_path / "access.log"))
    config.set("access_log_format", '%(h)s "%(r)s" %(U)s %(s)s "%(a)s"')
    log = GunicornLog(config)
    environ = {
        "REQUEST_METHOD": "GET",
        "RAW_URI": "/%0a",
        "PATH_INFO": "/\n127.0.0.1 forged\x1b[2J",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "192.0.2.7",
        "HTTP_USER_AGENT": "agent\x9b",
    }
    answer = SimpleNamespace(status="200 OK", sent=1, headers=[])
    try:
        log.access(answer, SimpleNamespace(headers=[]), environ, timedelta(milliseconds=5))
        text = (tmp_path / "access.log").read_text()
        assert text.count("\n") == 1
        assert not set(RAW) & set(text)
    finally:
        for name in ("gunicorn.error", "gunicorn.access"):
            for handler in list(logging.getLogger(name).handlers):
                logging.getLogger(name).removeHandler(handler)
                handler.close()

"""Gunicorn's own log lines contain no queries, whatever an operator switches on."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from portal.observability.gunicorn_log import GunicornLog
from portal.observability.logs import configure_logs
from portal.settings import load_settings

# Every field that gunicorn documents, and headers and variables of each kind.
FORMAT = (
    '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(m)s %(U)s %(q)s %(H)s %(s)s %(b)s %(f)s "%(a)s" %(D)s '
    "%({referer}i)s %({authorization}i)s %({cookie}i)s %({raw_uri}e)s %({query_string}e)s "
    "%({http_referer}e)s %({http_cookie}e)s %({http_authorization}e)s "
    "%({location}o)s %({set-cookie}o)s"
)
QUERY = "q=mauve+elephant&token=hunter2"


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: io.StringIO
) -> Iterator[GunicornLog]:
    monkeypatch.setattr("sys.stderr", written)
    root = logging.getLogger()
    handlers = root.handlers
    configure_logs(load_settings(log_format="json"))
    config = Config()
    config.set("accesslog", str(tmp_path / "access.log"))
    config.set("access_log_format", FORMAT)
    yield GunicornLog(config)
    root.handlers = handlers
    for name in ("gunicorn.error", "gunicorn.access"):
        for handler in list(logging.getLogger(name).handlers):
            logging.getLogger(name).removeHandler(handler)
            handler.close()


def test_access_log_of_any_format_contains_no_query(log: GunicornLog, tmp_path: Path) -> None:
    environ = {
        "REQUEST_METHOD": "GET",
        "RAW_URI": f"/search?{QUERY}",
        "PATH_INFO": "/search",
        "QUERY_STRING": QUERY,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "192.0.2.7",
        "HTTP_REFERER": f"http://h/search?{QUERY}",
        "HTTP_COOKIE": "portal_session=hunter2",
        "HTTP_AUTHORIZATION": "Bearer hunter2",
        "HTTP_USER_AGENT": "a browser",
    }
    sent = [(name[5:].title(), value) for name, value in environ.items() if name[:5] == "HTTP_"]
    answer = SimpleNamespace(
        status="303 See Other",
        sent=12,
        headers=[("Location", f"/login?next=/search?{QUERY}"), ("Set-Cookie", "x=hunter2")],
    )
    log.access(answer, SimpleNamespace(headers=sent), environ, timedelta(milliseconds=5))
    line = (tmp_path / "access.log").read_text()
    assert '"GET /search HTTP/1.1"' in line
    assert " 303 12 " in line
    for leak in ("mauve", "hunter2", "?"):
        assert leak not in line, line


def test_errors_of_gunicorn_contain_neither_query_nor_message(
    log: GunicornLog, written: io.StringIO
) -> None:
    try:
        raise ValueError(QUERY)
    except ValueError:
        log.exception("Error handling request %s", f"/search?{QUERY}")
    line = "Invalid request from ip=::1: Invalid HTTP request line: 'GET /search?q=mauve elephant'"
    log.warning(line)
    lines = written.getvalue()
    assert "Error handling request /search" in lines
    assert "ValueError" in lines
    assert "ip=::1: Invalid HTTP request line" in lines
    for leak in ("mauve", "elephant", "hunter2"):
        assert leak not in lines

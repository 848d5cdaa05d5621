"""The cost of HTTP: the same searches through the function, the application without a socket, and
gunicorn. One at a time, on an otherwise idle machine."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apiflask import APIFlask

from bench.corpus import Corpus, Question, attach
from bench.corpus.profiles import RESULTS, Profile
from bench.timing import Contender, Samples, alternate
from portal import create_app
from portal.processes.serving.web_server import listen
from portal.services.people import sessions

CALL, APPLICATION, SERVER = "search call", "application", "gunicorn, over a socket"
_PATH = "/api/knowledge/search"
_ROOT = Path(__file__).resolve().parents[1]
_START_TIMEOUT_S = 60.0
_TOKEN_TTL_S = 3600
UNLIMITED: dict[str, Any] = {"rate_limits": {"enabled": False}}


def measure_http(
    corpus: Corpus, data_dir: Path, profile: Profile, *, seconds: float
) -> list[dict[str, Any]]:
    """Return the times of each way, and what it adds to the median of the bare call."""
    with _contenders(corpus, data_dir, profile) as contenders:
        samples = alternate(contenders, corpus.questions, seconds=seconds)
    return [_row(way, taken, samples[CALL]) for way, taken in samples.items()]


def _row(way: str, taken: Samples, call: Samples) -> dict[str, Any]:
    return {
        "way": way,
        **taken.as_dict(),
        "added_ms": round(taken.median_ms - call.median_ms, 3),
        "ratio": round(taken.median_ms / call.median_ms, 3),
    }


@contextmanager
def _contenders(corpus: Corpus, data_dir: Path, profile: Profile) -> Iterator[dict[str, Contender]]:
    url = corpus.services.database.url
    own = attach(corpus.size, data_dir, url, **UNLIMITED)
    client = create_app(own.services).test_client()
    token = sessions.token_for(own.services, profile.user, ttl_s=_TOKEN_TTL_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(question: Question) -> object:
        return own.search(profile, question)

    def ask_application(question: Question) -> object:
        answer = client.post(_PATH, data=_body(question), headers=headers)
        return checked(_PATH, answer.status_code, answer.get_data())

    target = f"bench.over_http:application({corpus.size}, {str(data_dir)!r}, {url!r})"
    with gunicorn(target, data_dir) as connection:

        def ask_server(question: Question) -> object:
            connection.request("POST", _PATH, _body(question), headers)
            answer = connection.getresponse()
            return checked(_PATH, answer.status, answer.read())

        yield {
            CALL: Contender(call),
            APPLICATION: Contender(ask_application),
            SERVER: Contender(ask_server),
        }
    own.services.database.dispose()


def application(size: int, data_dir: str, url: str) -> APIFlask:
    """Return the application that gunicorn serves, on a corpus that another process holds open."""
    return create_app(attach(size, Path(data_dir), url, **UNLIMITED).services)


@contextmanager
def gunicorn(target: str, data_dir: Path) -> Iterator[http.client.HTTPConnection]:
    """Open a persistent connection to one process of gunicorn that serves `target`."""
    with listen("127.0.0.1", 0) as listener:
        command = [sys.executable, "-m", "gunicorn", target, "--bind", f"fd://{listener.fileno()}"]
        command += ["--workers", "1", "--log-level", "warning", "--no-control-socket"]
        with subprocess.Popen(
            command,
            cwd=_ROOT,
            env=os.environ | {"PORTAL_DATA_DIR": str(data_dir)},
            pass_fds=(listener.fileno(),),
        ) as process:
            connection = http.client.HTTPConnection(*listener.getsockname(), timeout=30)
            try:
                _wait_for(connection, process)
                yield connection
            finally:
                connection.close()
                process.terminate()


def _wait_for(connection: http.client.HTTPConnection, process: subprocess.Popen[bytes]) -> None:
    """Wait for a response: the socket accepts connections before a worker reads from them."""
    connection.timeout = _START_TIMEOUT_S
    connection.request("GET", "/health/live")
    answer = connection.getresponse()
    answer.read()
    if answer.status != http.client.OK or process.poll() is not None:
        raise RuntimeError("gunicorn did not start; it says why above")


def _body(question: Question) -> bytes:
    return json.dumps({"query": question.text, "top_n": RESULTS}).encode()


def checked(path: str, status: int, body: bytes) -> bytes:
    """Return the body of a successful response. Raises RuntimeError for others."""
    if status != http.client.OK:
        raise RuntimeError(f"{path} answered {status}: {body[:200]!r}")
    return body

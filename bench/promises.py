"""The promises of /v1 at 50,000 documents: searches and answers over HTTP, each question embedded
by the bundled model; answers are written by a slow chat model, or quoted without one."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
from apiflask import APIFlask

from bench import SECRET_KEY
from bench.corpus import Corpus, Question
from bench.over_http import UNLIMITED, checked, gunicorn
from bench.timing import Samples
from portal import create_app
from portal.container import build_services
from portal.services.people import sessions
from portal.settings import load_settings

DOCUMENTS = 50_000
MODEL_LATENCY_S = 2.5
_WARM_UP = 20
_ANSWER = "A sentence that the first passage bears out [1]."
_TOKEN_TTL_S = 3600


@dataclass(frozen=True, slots=True)
class Scale:
    """The number of different questions for each endpoint."""

    searches: int
    answers: int


QUICK, WHOLE = Scale(searches=40, answers=5), Scale(searches=300, answers=40)


@dataclass(frozen=True, slots=True)
class _Promise:
    path: str
    goal_ms: float
    count: int
    is_quoted: bool = False

    def body(self, question: Question) -> bytes:
        return json.dumps({"query": question.text}).encode()


def measure_promises(
    corpus: Corpus, data_dir: Path, scale: Scale, *, log: Callable[[str], None]
) -> dict[str, Any]:
    """Measure one client that asks every question once, so that caches do not help."""
    promises = (
        _Promise("/v1/search", 150.0, scale.searches),
        _Promise("/v1/answer", 3000.0, scale.answers),
        _Promise("/v1/answer", 400.0, scale.searches, is_quoted=True),
    )
    profile = corpus.profile("100 %")
    token = sessions.token_for(corpus.services, profile.user, ttl_s=_TOKEN_TTL_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    rows = []
    with slow_chat_model() as chat_url:
        for is_quoted in (False, True):
            target = (
                f"bench.promises:application({str(data_dir)!r}, "
                f"{corpus.services.database.url!r}, {'' if is_quoted else chat_url!r})"
            )
            asked = iter(corpus.questions)
            with gunicorn(target, data_dir) as connection:
                of_server = [one for one in promises if one.is_quoted is is_quoted]
                for _ in range(_WARM_UP):
                    _ask(connection, of_server[0], next(asked), headers)
                for promise in of_server:
                    log(promise.path)
                    before = _server_seconds()
                    asked_of = [
                        _ask(connection, promise, next(asked), headers)
                        for _ in range(promise.count)
                    ]
                    spent = _server_seconds() - before
                    rows.append(
                        {
                            "path": f"{promise.path}{', quotations' if is_quoted else ''}",
                            "goal_ms": promise.goal_ms,
                            "degraded": sum(is_degraded for _, is_degraded in asked_of),
                            "processor_ms": round(1000 * spent / promise.count, 1),
                            **Samples([[seconds for seconds, _ in asked_of]]).as_dict(),
                        }
                    )
    return {
        "documents": len(corpus.document_ids),
        "model": corpus.services.embedder.name,
        "model_latency_s": MODEL_LATENCY_S,
        "rows": rows,
    }


def _server_seconds() -> float:
    """Return the processor time that the web process has taken so far."""
    children = psutil.Process(os.getpid()).children(recursive=True)
    times = [one.cpu_times() for one in children if "gunicorn" in one.cmdline()]
    return sum(one.user + one.system for one in times)


def application(data_dir: str, url: str, chat_url: str = "") -> APIFlask:
    """Return the application that gunicorn serves: the portal with its bundled model, on a kept
    corpus. It quotes without a `chat_url`."""
    by_model = {"provider": "openai", "api_base": chat_url}
    settings = load_settings(
        data_dir=Path(data_dir),
        log_level="error",
        secret_key=SECRET_KEY,
        chat=by_model if chat_url else {"provider": "extractive"},
        **UNLIMITED,
    )
    services = build_services(settings, database_url=url)
    services.embedder.embed_query("load the model")
    return create_app(services)


def _ask(
    connection: http.client.HTTPConnection,
    promise: _Promise,
    question: Question,
    headers: dict[str, str],
) -> tuple[float, bool]:
    """Return the seconds until the whole response has arrived, and whether it is degraded."""
    started = time.perf_counter()
    connection.request("POST", promise.path, promise.body(question), headers)
    response = connection.getresponse()
    body = checked(promise.path, response.status, response.read())
    seconds = time.perf_counter() - started
    return seconds, bool(json.loads(body)["degraded"])


class _ChatHandler(BaseHTTPRequestHandler):
    """A handler of OpenAI's protocol that sends the whole answer after the server's latency."""

    server: _ChatServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        time.sleep(self.server.latency_s)
        delta = {"choices": [{"index": 0, "delta": {"content": _ANSWER}, "finish_reason": "stop"}]}
        self.wfile.write(f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_arguments: object) -> None:
        pass


class _ChatServer(ThreadingHTTPServer):
    request_queue_size = 256  # Many users of a load test ask at once.
    latency_s = MODEL_LATENCY_S


@contextmanager
def slow_chat_model(latency_s: float = MODEL_LATENCY_S) -> Iterator[str]:
    """Yield the address of a chat model that answers after `latency_s` seconds."""
    with _ChatServer(("127.0.0.1", 0), _ChatHandler) as server:
        server.latency_s = latency_s
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()

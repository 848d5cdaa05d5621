"""Under overload the portal answers 503 at once, and recovers afterwards."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from werkzeug.serving import make_server

from portal import create_app
from portal.errors import DatabaseUnavailable
from portal.limits.overload import RequestSlots
from portal.services import Services
from portal.settings import Settings, WebSettings
from tests.conftest import PASSWORD, Portal
from tests.factories.servers.endpoint import fake_endpoint, wait_until
from tests.factories.servers.web import web_process

SEARCH = "/api/knowledge/search"
CLIENTS = 64
POOL_TIMEOUT_S = PATIENCE_S = 0.3
SMALL = {
    "PORTAL_DATABASE_POOL_SIZE": "2",
    "PORTAL_DATABASE_POOL_TIMEOUT_S": str(POOL_TIMEOUT_S),
    "PORTAL_WEB__REQUESTS_AT_ONCE": "4",
    "PORTAL_WEB__REQUESTS_WAITING": "8",
    "PORTAL_WEB__PATIENCE_S": str(PATIENCE_S),
    "PORTAL_SEARCH__CACHE_TTL_S": "0",
    "PORTAL_SEARCH__STATEMENT_TIMEOUT_S": "2",
    "PORTAL_RATE_LIMITS__ENABLED": "false",
}
# Tolerance for a busy machine that also runs all clients.
SLACK_S = 2.0


# --- slots ----------------------------------------------------------------------------------------


def test_queue_of_requests_is_bounded_and_the_rest_are_refused() -> None:
    slots = RequestSlots(WebSettings(requests_at_once=2, requests_waiting=1, patience_s=30))
    assert slots.acquire()
    assert slots.acquire()
    with ThreadPoolExecutor(1) as waiting:
        turn = waiting.submit(slots.acquire)
        wait_until(lambda: slots.waiting == 1, within_s=10, complaint="no request waits")
        started = time.perf_counter()
        assert not slots.acquire()
        assert time.perf_counter() - started < 10
        assert not turn.done()
        slots.release()
        assert turn.result(timeout=10)
    assert slots.waiting == 0


def test_waiting_requests_are_refused_after_their_patience() -> None:
    slots = RequestSlots(WebSettings(requests_at_once=1, requests_waiting=5, patience_s=0.05))
    assert slots.acquire()
    assert not slots.acquire()
    assert slots.waiting == 0


def test_every_end_of_a_request_frees_its_place(make_services: Callable[..., Services]) -> None:
    services = make_services(web={"requests_at_once": 1, "requests_waiting": 0})
    portal = Portal.of(services)
    app = create_app(services)
    app.config["PROPAGATE_EXCEPTIONS"] = False
    entered, leave = threading.Event(), threading.Event()

    def stay() -> str:
        entered.set()
        leave.wait(30)
        return "stayed"

    def fail() -> str:
        raise RuntimeError("on purpose")

    app.add_url_rule("/api/v1/stay", view_func=stay)
    app.add_url_rule("/fail", view_func=fail)
    client, headers = app.test_client(), portal.headers()
    for path, status in (("/fail", 500), ("/api/none", 404), ("/documents", 200)) * 2:
        assert client.get(path, headers=headers).status_code == status
    with ThreadPoolExecutor(1) as other:
        staying = other.submit(lambda: app.test_client().get("/api/v1/stay", headers=headers))
        assert entered.wait(30)
        refused = client.get("/api/v1/stay", headers=headers)
        page = client.get("/documents", headers=headers)
        assert client.get("/health").status_code == 200
        assert client.get("/static/vendor/x/htmx.js").status_code == 200
        leave.set()
        assert staying.result(30).status_code == 200
    assert refused.status_code == page.status_code == 503
    assert refused.json["success"] is False
    assert refused.json["error"]["code"] == "overloaded"
    assert int(refused.headers["Retry-After"]) >= 1
    assert page.mimetype == "text/html"
    assert client.get("/documents", headers=headers).status_code == 200


class WatchedServer:
    """A request body that records when it is first read."""

    def __init__(self, body: Any, is_read: threading.Event) -> None:
        self._body, self._is_read = body, is_read

    def __getattr__(self, name: str) -> Any:
        self._is_read.set()
        return getattr(self._body, name)


def test_slow_sender_occupies_no_place(make_services: Callable[..., Services]) -> None:
    services = make_services(web={"requests_at_once": 1, "requests_waiting": 0})
    portal = Portal.of(services)
    app, is_read = create_app(services), threading.Event()
    inner = app.wsgi_app

    def watched(environ: Any, start_response: Any) -> Any:
        environ["wsgi.input"] = WatchedServer(environ["wsgi.input"], is_read)
        return inner(environ, start_response)

    app.wsgi_app = watched  # type: ignore[method-assign]
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    credentials = json.dumps({"username": "admin", "password": PASSWORD})
    slow = [
        ("/api/auth/token", credentials, ""),
        (SEARCH, '{"query": "leave"}', f"Authorization: {portal.headers()['Authorization']}\r\n"),
    ]
    try:
        address = f"http://127.0.0.1:{server.port}"
        for path, body, headers in slow:
            is_read.clear()
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
                head = (
                    f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Connection: close\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
                )
                connection.sendall((head + body[:-1]).encode())
                assert is_read.wait(30)
                others = httpx.post(
                    f"{address}/api/auth/token",
                    content=credentials,
                    headers={"Content-Type": "application/json"},
                    timeout=30,
                )
                assert others.status_code == 200
                connection.sendall(body[-1:].encode())
                assert connection.makefile("rb").readline().split()[1] == b"200"
    finally:
        server.shutdown()
        thread.join(30)
        server.server_close()


def test_a_pool_without_a_free_connection_is_waited_for_only_so_long(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(database_pool_size=1, database_pool_timeout_s=0.1)
    with services.database.begin() as session:
        session.execute(text("SELECT 1"))
        started = time.perf_counter()
        with pytest.raises(DatabaseUnavailable) as raised, services.database.read() as other:
            other.execute(text("SELECT 1"))
        assert time.perf_counter() - started < SLACK_S
    assert raised.value.retry_after_s == 2


# --- a whole process ------------------------------------------------------------------------------


@pytest.mark.slow
def test_stuck_and_overrun_it_refuses_quickly_says_how_it_is_and_recovers(
    portal: Portal, tmp_path: Path
) -> None:
    portal.add("Every employee has fifteen days of leave.")
    headers = portal.headers()
    with (
        web_process(portal.services.settings, tmp_path, **SMALL) as address,
        httpx.Client(
            base_url=address,
            headers=headers,
            timeout=60,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
        ) as client,
        ThreadPoolExecutor(CLIENTS + 1) as threads,
    ):

        def ask(_: int) -> tuple[int, str, float]:
            started = time.perf_counter()
            answer = client.post(SEARCH, json={"query": "leave"})
            seconds = time.perf_counter() - started
            if answer.status_code != httpx.codes.OK:
                assert int(answer.headers["Retry-After"]) >= 1
            return answer.status_code, answer.json().get("error", {}).get("code", ""), seconds

        def look(_: int) -> tuple[int, float]:
            started = time.perf_counter()
            return client.get("/health").status_code, time.perf_counter() - started

        assert ask(0)[0] == httpx.codes.OK
        with portal.services.database.begin() as session:
            # Every search now blocks while holding its connection.
            session.execute(text("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE"))
            asked = [threads.submit(ask, n) for n in range(CLIENTS)]
            looks = [look(n) for n in range(5)]
            answers = [one.result() for one in asked]
        again = [ask(n) for n in range(8)]

    assert {status for status, _, _ in answers} == {503}
    assert Counter(code for _, code, _ in answers)["overloaded"] > CLIENTS // 2
    late = [one for *_, one in answers if one > POOL_TIMEOUT_S + PATIENCE_S + SLACK_S]
    assert len(late) <= int(SMALL["PORTAL_WEB__REQUESTS_AT_ONCE"]), "others than who is stuck"
    assert {status for status, _ in looks} == {200}
    assert max(seconds for _, seconds in looks) < 1.0 + SLACK_S
    assert {status for status, _, _ in again} == {200}


# --- a model that is late -------------------------------------------------------------------------


def test_an_endpoint_that_is_late_costs_two_seconds_and_is_named(
    make_services: Callable[..., Services], record_property: Callable[[str, object], None]
) -> None:
    with fake_endpoint(dimensions=64) as endpoint:
        embedding = {
            "provider": "openai",
            "model": "fake",
            "dimensions": 64,
            "api_base": endpoint.url,
        }
        services = make_services(embedding=embedding, search={"keyword_backend": "tsvector"})
        portal = Portal.of(services)
        portal.add("Every employee has fifteen days of leave.")
        client, headers = create_app(services).test_client(), portal.headers()
        endpoint.delay_s = 30
        started = time.perf_counter()
        late = client.post(SEARCH, json={"query": "days of leave"}, headers=headers)
        seconds = time.perf_counter() - started
        endpoint.delay_s = 0
        in_time = client.post(SEARCH, json={"query": "days of leave"}, headers=headers)
    record_property("seconds", round(seconds, 2))
    assert late.status_code == 200
    assert late.json["search_method"] == "keyword"
    assert late.json["degraded"] == ["embedder_unavailable"]
    assert late.json["results"]
    assert 1.9 < seconds < 2.5 + SLACK_S
    # Degraded results are not cached.
    assert in_time.json["search_method"] == "hybrid"
    assert in_time.json["degraded"] == []


def test_web_process_has_threads_for_accepted_requests_and_for_refusals() -> None:
    settings = Settings(web={"requests_at_once": 4, "requests_waiting": 8})
    assert settings.web_process_threads > 4 + 8 + settings.chat.concurrent_answers
    assert settings.with_requests_at_once(None) is settings
    assert settings.with_requests_at_once(5).web.requests_at_once == 5

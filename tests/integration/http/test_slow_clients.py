"""Clients that stall, send slowly or never read do not keep others from being answered."""

from __future__ import annotations

import json
import re
import select
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from portal.container import build_services
from tests.conftest import PASSWORD, TEMPLATE_DATA, Portal, cloned_database, make_settings
from tests.factories.attacks import (
    ATTACKER,
    NOTHING,
    OTHER_ADDRESS,
    PART_OF_A_HEAD,
    TIMEOUT_S,
    ask,
    connect,
    head,
    read_status,
    stalled,
)
from tests.factories.servers.web import web_process

HEALTH, SEARCH, UPLOAD = "/health/live", "/api/knowledge/search", "/api/knowledge/documents"
JSON = "Content-Type: application/json"
CREDENTIALS = json.dumps({"username": "admin", "password": PASSWORD}).encode()
# Seconds instead of the default minutes.
IMPATIENT = {
    "PORTAL_WEB__REQUESTS_AT_ONCE": "2",
    "PORTAL_WEB__REQUESTS_WAITING": "4",
    "PORTAL_WEB__PATIENCE_S": "0.5",
    "PORTAL_WEB__HEADER_TIMEOUT_S": "1",
    "PORTAL_WEB__CLIENT_PATIENCE_S": "1",
    "PORTAL_WEB__MIN_RATE_KB_S": "8",
    "PORTAL_WEB__BODIES_PER_USER": "3",
    "PORTAL_RATE_LIMITS__ENABLED": "false",
}
PATIENT = IMPATIENT | {
    "PORTAL_WEB__HEADER_TIMEOUT_S": "60",
    "PORTAL_WEB__CLIENT_PATIENCE_S": "60",
}
# MANY exceeds the threads and TOO_MANY the connections that one address may use.
MANY, TOO_MANY = 100, 230
# Longest time for a response that waits for no other client, on a busy machine.
PROMPTLY_S = 5.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def portal(
    server_url: str, template: str, run_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Portal]:
    """Return a portal shared by all tests of this module, so that only two servers are started."""
    data_dir = tmp_path_factory.mktemp("portal")
    shutil.copytree(run_dir / TEMPLATE_DATA / "cache", data_dir / "cache")
    with cloned_database(server_url, template) as url:
        services = build_services(make_settings(data_dir, url))
        yield Portal.of(services)
        services.database.dispose()


@pytest.fixture(scope="module")
def patient(portal: Portal) -> Iterator[str]:
    """Start a server that waits for slow clients longer than a test takes."""
    settings = portal.services.settings
    with web_process(settings, settings.data_dir, **PATIENT) as address:
        yield address


@pytest.fixture(scope="module")
def impatient(portal: Portal) -> Iterator[str]:
    """Start a server that disconnects slow clients within a second or two."""
    settings = portal.services.settings
    with web_process(settings, settings.data_dir, **IMPATIENT) as address:
        yield address


def bearer(portal: Portal) -> str:
    return f"Authorization: {portal.headers()['Authorization']}"


def assert_served(address: str, portal: Portal, *, source: str) -> None:
    alive = ask(address, HEALTH, source=source)
    headers = portal.headers() | {"Content-Type": "application/json"}
    found = ask(
        address, SEARCH, method="POST", body=b'{"query": "leave"}', headers=headers, source=source
    )
    signed_in = ask(
        address,
        "/api/auth/token",
        method="POST",
        body=CREDENTIALS,
        headers={"Content-Type": "application/json"},
        source=source,
    )
    assert (alive.status, found.status, signed_in.status) == (200, 200, 200)
    assert max(alive.seconds, found.seconds, signed_in.seconds) < PROMPTLY_S


def test_stalled_connections_do_not_block_answers(patient: str, portal: Portal) -> None:
    token = bearer(portal)
    part_of_a_body = head(SEARCH, JSON, token, "Content-Length: 1000") + b'{"query'
    attacks = {
        "idle": NOTHING,
        "head": PART_OF_A_HEAD,
        "body": part_of_a_body,
        "body of an anonymous client": head("/login", JSON, "Content-Length: 1000") + b"{",
        "body that waits to be asked for": head(
            SEARCH, JSON, token, "Content-Length: 1000", "Expect: 100-continue"
        ),
    }
    for sent in attacks.values():
        with stalled(patient, TOO_MANY, sent):
            # Also from the attacker's own address: idle connections are closed to make room.
            assert_served(patient, portal, source=ATTACKER)
            assert_served(patient, portal, source=OTHER_ADDRESS)


def test_slow_uploads_and_chunked_bodies_leave_others_alone(patient: str, portal: Portal) -> None:
    token = bearer(portal)
    of_files = "Content-Type: multipart/form-data; boundary=x"
    attacks = [
        head(SEARCH, JSON, token, "Transfer-Encoding: chunked") + b"5\r\n{",
        head(UPLOAD, of_files, token, "Content-Length: 10000000") + b"--x\r\n",
    ]
    for sent in attacks:
        with stalled(patient, MANY, sent):
            assert_served(patient, portal, source=ATTACKER)
            assert_served(patient, portal, source=OTHER_ADDRESS)


def test_uploads_of_a_user_at_the_same_time_are_limited(patient: str, portal: Portal) -> None:
    of_files = "Content-Type: multipart/form-data; boundary=x"
    part = head(UPLOAD, of_files, bearer(portal), "Content-Length: 10000000") + b"--x\r\n"
    with stalled(patient, 4, part) as connections:
        # One is refused; the others wait for the rest of their bodies.
        answered, _, _ = select.select(connections, [], [], TIMEOUT_S)
        assert [read_status(one) for one in answered] == [429]
        other = portal.user("ada")
        theirs = portal.headers(other)["Authorization"]
        with connect(patient, OTHER_ADDRESS) as connection:
            body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            body += b"Leave is fifteen days. " * 5000 + b"\r\n--x--\r\n"
            length = f"Content-Length: {len(body)}"
            connection.sendall(head(UPLOAD, of_files, f"Authorization: {theirs}", length) + body)
            assert read_status(connection) == 202


def test_clients_that_are_too_slow_are_disconnected(impatient: str, portal: Portal) -> None:
    token = bearer(portal)
    slow = {
        PART_OF_A_HEAD: 408,
        head(SEARCH, JSON, token, "Content-Length: 1000") + b"{": 408,
        head(SEARCH, JSON, token, "Transfer-Encoding: chunked") + b"5\r\n{": 408,
        head(UPLOAD, JSON, token, "Content-Length: 300000") + b"{": 413,
        NOTHING: None,
    }
    connections = []
    for sent, status in slow.items():
        connection = connect(impatient)
        connection.sendall(sent)
        connections.append((connection, status))
    for connection, status in connections:
        assert read_status(connection) == status
        connection.close()


def test_a_slow_upload_that_keeps_the_rate_goes_through(impatient: str, portal: Portal) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="slow.txt"\r\n\r\n'
    body += b"Leave is fifteen days. " * 14_000 + b"\r\n--x--\r\n"
    lines = ("Content-Type: multipart/form-data; boundary=x", f"Content-Length: {len(body)}")
    pause = threading.Event()
    with connect(impatient) as connection:
        started = time.perf_counter()
        connection.sendall(head(UPLOAD, *lines, bearer(portal)))
        for start in range(0, len(body), 16_000):
            connection.sendall(body[start : start + 16_000])
            pause.wait(0.15)
        assert time.perf_counter() - started > 2 * float(IMPATIENT["PORTAL_WEB__CLIENT_PATIENCE_S"])
        assert read_status(connection) == 202


def test_clients_that_never_read_hold_no_threads(patient: str, portal: Portal) -> None:
    portal.add("Every employee has fifteen days of leave. " * 20_000, name="long.txt")
    page = head("/static/vendor/x/htmx.js", method="GET")
    with stalled(patient, MANY // 2, page * 10):
        assert_served(patient, portal, source=OTHER_ADDRESS)


def test_half_closed_and_garbled_connections_are_answered(patient: str, portal: Portal) -> None:
    with connect(patient) as half_closed:
        half_closed.sendall(head(HEALTH, "Connection: close", method="GET"))
        half_closed.shutdown(socket.SHUT_WR)
        assert read_status(half_closed) == 200
    with connect(patient) as garbled:
        garbled.sendall(head(HEALTH, method="GET") + b"\x00\xff garbage \r\n\r\n" * 100)
        answer = garbled.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1 ") == 2
        assert b"HTTP/1.1 400 " in answer
    with connect(patient) as too_long:
        too_long.sendall(b"GET /" + b"a" * 9000)
        assert read_status(too_long) == 414
    with connect(patient) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\n" + b"X-Long: a\r\n" * 8000)
        assert read_status(endless) == 431
    with connect(patient) as empty:
        empty.sendall(b"\r\n\r\n")
        assert read_status(empty) in {None, 400}
    assert_served(patient, portal, source=ATTACKER)


def test_pipelined_and_kept_connections_are_answered_in_order(patient: str) -> None:
    body = b'{"name": "nobody"}'
    requests = [
        head(HEALTH, method="GET"),
        head("/login", JSON, f"Content-Length: {len(body)}") + body,
        head("/login", method="GET"),
        head("/no-such-page", "Connection: close", method="GET"),
    ]
    sent = b"".join(requests)
    with connect(patient) as connection:
        # Split into pieces that end within headers and bodies.
        for start in range(0, len(sent), 37):
            connection.sendall(sent[start : start + 37])
        answers = connection.makefile("rb").read()
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"403", b"200", b"404"]


def test_bodies_are_read_however_they_are_sent(patient: str, portal: Portal) -> None:
    body = b'{"query": "leave"}'
    token = bearer(portal)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    sent = [
        (head(SEARCH, JSON, token, "Transfer-Encoding: chunked"), chunked),
        (head(SEARCH, JSON, token, f"Content-Length: {len(body)}"), body),
        (head(SEARCH, JSON, token, f"Content-Length: {len(body)}", "Expect: 100-continue"), body),
    ]
    for first, rest in sent:
        with connect(patient) as connection:
            connection.sendall(first)
            if b"Expect" in first:
                assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            for start in range(0, len(rest), 7):
                connection.sendall(rest[start : start + 7])
            assert read_status(connection) == 200


def test_a_refused_body_leaves_the_connection_as_announced(patient: str, portal: Portal) -> None:
    for path, size in [("/api/nothing", 200_000), (SEARCH, 300_000), (SEARCH, 3_000_000)]:
        body = b'{"query": "' + b"a" * size + b'"}'
        with connect(patient) as connection:
            connection.sendall(head(path, JSON, bearer(portal), f"Content-Length: {len(body)}"))
            with suppress(ConnectionError):
                connection.sendall(body)
            answers = connection.makefile("rb")
            status = answers.readline().split()[1]
            lines = iter(answers.readline, b"\r\n")
            headers = dict(line.lower().strip().split(b": ", 1) for line in lines)
            answers.read(int(headers[b"content-length"]))
            assert status == (b"413" if path == SEARCH else b"404")
            if headers[b"connection"] == b"keep-alive":
                connection.sendall(head(HEALTH, method="GET"))
                assert answers.readline().split()[1] == b"200"
            else:
                assert size > 256 * 1024
                assert answers.read() == b""

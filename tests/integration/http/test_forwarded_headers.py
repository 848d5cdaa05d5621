"""Forwarded headers are ignored when a client sends them itself.

Runs against a real gunicorn, which reads some of them before the application does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from bench.cluster.programs import free_port
from tests.conftest import Portal
from tests.factories.servers.web import web_process

FORGED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Protocol": "ssl",
    "X-Forwarded-Ssl": "on",
    "X-Forwarded-For": "198.51.100.7",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Prefix": "/evil",
    "SCRIPT_NAME": "/login",
    "PATH_INFO": "/evil",
}

# A server with the portal's configuration and an application that returns its environment.
TELLING = """
import json
def app(environ, start_response):
    names = ("SCRIPT_NAME", "PATH_INFO", "wsgi.url_scheme")
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({name: environ[name] for name in names}).encode()]
"""


@pytest.mark.timeout(300)
def test_client_on_the_same_machine_forges_neither_scheme_nor_path(
    portal: Portal, tmp_path: Path
) -> None:
    settings = portal.services.settings
    with web_process(settings, tmp_path) as address, httpx.Client(base_url=address) as client:
        plain = client.get("/login")
        assert plain.status_code == 200
        for name, value in FORGED.items():
            forged = client.get("/login", headers={name: value})
            assert forged.status_code == 200, name
            assert "Strict-Transport-Security" not in forged.headers, name
            assert "evil" not in forged.text, name
            assert "Secure" not in forged.headers.get("Set-Cookie", ""), name
        assert client.get("/documents", headers={"SCRIPT_NAME": "/documents"}).status_code == 303


@pytest.mark.timeout(300)
def test_trusted_proxy_sets_the_scheme(portal: Portal, tmp_path: Path) -> None:
    settings = portal.services.settings
    with (
        web_process(settings, tmp_path, PORTAL_TRUSTED_PROXIES="1") as address,
        httpx.Client(base_url=address) as client,
    ):
        answer = client.get("/login", headers={"X-Forwarded-Proto": "https"})
        assert "Strict-Transport-Security" in answer.headers
        assert client.get("/login", headers={"SCRIPT_NAME": "/login"}).status_code == 200


@pytest.mark.parametrize("bind", ["tcp", "unix"])
def test_web_server_ignores_forwarded_headers(
    bind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the portal's configuration, gunicorn would trust every client.
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    monkeypatch.setenv("PORTAL_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "telling.py").write_text(TELLING)
    port = free_port()
    path = tmp_path / "socket"
    where = f"unix:{path}" if bind == "unix" else f"127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "telling:app", "--bind", where]
    command += ["--pythonpath", str(tmp_path), "--no-control-socket", "--log-level", "error"]
    transport = httpx.HTTPTransport(uds=str(path)) if bind == "unix" else httpx.HTTPTransport()
    configuration = Path(__file__).parents[3] / "gunicorn.conf.py"
    # The hook after the fork needs the portal's own application.
    text = configuration.read_text().split("def post_worker_init")[0]
    (tmp_path / "gunicorn.conf.py").write_text(text)
    with (
        subprocess.Popen(command, cwd=tmp_path) as process,
        httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{port}") as client,
    ):
        try:
            deadline = time.monotonic() + 60
            while True:
                assert time.monotonic() < deadline, "the server did not start"
                try:
                    told = client.get("/a/b", headers=FORGED | {"SCRIPT_NAME": "/a"}).json()
                    break
                except httpx.TransportError:
                    assert process.poll() is None
                    time.sleep(0.1)
        finally:
            process.terminate()
            process.wait(30)
    assert told == {"SCRIPT_NAME": "", "PATH_INFO": "/a/b", "wsgi.url_scheme": "http"}

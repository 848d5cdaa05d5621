"""The web process: its address, and gunicorn's arguments."""

from __future__ import annotations

import http.client
import os
import socket
import sys
from pathlib import Path

from portal.database.embedded import EmbeddedPostgres
from portal.errors import ServerSetup
from portal.settings import Settings

PROJECT_DIR = Path(__file__).resolve().parents[3]

DRAIN_TIMEOUT_S = 10.0


def listen(host: str, port: int) -> socket.socket:
    """Return a bound, inheritable socket. Raises ServerSetup if the address is not available."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServerSetup(
            f"The portal cannot listen on {host}:{port} ({reason}). Stop what uses it, "
            "or choose another with --host and --port."
        ) from error
    listener.set_inheritable(True)
    # Headers and body are sent one after the other: on a connection that stays open, the body would
    # wait some forty milliseconds for the client to acknowledge the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def answers(listener: socket.socket) -> bool:
    """Return whether /health reports that the portal is ready."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def child_environment(settings: Settings, url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": url,
        "PORTAL_DATA_DIR": str(settings.data_dir),
        "PORTAL_WEB__REQUESTS_AT_ONCE": str(settings.web.requests_at_once),
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(PROJECT_DIR), os.environ.get("PYTHONPATH")])
        ),
    }


def gunicorn_arguments(bind: str, settings: Settings) -> list[str]:
    drain_s = int(DRAIN_TIMEOUT_S) - 2  # Gunicorn's timeout must end before ours.
    return [
        *("wsgi:app", "--bind", bind, "--pythonpath", str(PROJECT_DIR)),
        *("--config", str(PROJECT_DIR / "gunicorn.conf.py")),
        # Gunicorn's maximum: a Chinese query takes nine bytes per character.
        *("--limit-request-line", "8190"),
        *("--workers", "1"),
        *("--threads", str(settings.web_process_threads)),
        *("--graceful-timeout", str(drain_s), "--timeout", "120", "--keep-alive", "15"),
        *("--log-level", "warning", "--no-control-socket"),
    ]


def run_web(settings: Settings, *, host: str, port: int) -> int:
    """Run the web server in this process until a signal arrives, for `portal web`."""
    url = settings.database_url or EmbeddedPostgres(settings.data_dir).url()
    os.environ |= child_environment(settings, url)
    sys.argv = ["gunicorn", *gunicorn_arguments(f"{host}:{port}", settings)]
    from gunicorn.app.wsgiapp import run

    run()
    return 0

"""A portal in this process, with a fake chat server.

It starts quickly, and its threads belong to this process, so that tests can count them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from werkzeug.serving import WSGIRequestHandler, make_server

from e2e.pages.portal import PortalPages
from portal import create_app
from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres
from portal.http.cookies import SESSION as SESSION_COOKIE
from portal.services import Services
from portal.services.documents import notifications
from portal.services.operations import setup
from portal.services.people import accounts
from portal.settings import Settings
from tests.conftest import SERVER, Portal, make_settings
from tests.factories.servers.chat import FakeChat, Step, fake_chat
from tests.factories.servers.endpoint import wait_until

# Threads that live as long as the portal (the server, the reader of streams) or the test (its
# timeout).
_NOT_THE_PORTALS = ("web", "chat", "pytest_timeout")


@dataclass(frozen=True)
class Library:
    """A database with documents, for several portals in turn."""

    directory: Path
    url: str

    def settings(self, **overrides: object) -> Settings:
        return make_settings(self.directory / "data", self.url, **overrides)


@contextmanager
def library(documents: dict[str, str]) -> Iterator[Library]:
    """Yield a library of `documents` (texts by file name), which the administrator shares."""
    # Not in pytest's own folder: under root the server runs as another user without access to it.
    directory = Path(tempfile.mkdtemp(prefix="portal-e2e-"))
    server = EmbeddedPostgres(directory, extra_settings=SERVER)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in [name for name in os.environ if name.startswith("PORTAL_")]:
            patch.delenv(name)
        patch.setenv("PORTAL_CONFIG", os.devnull)
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        made = Library(directory, server.start())
        stack.callback(server.stop)
        services = build_services(made.settings())
        stack.callback(services.database.dispose)
        list(setup.prepare_database(services))
        portal = Portal.of(services)
        for name, text in documents.items():
            portal.add(text, name=name)
        # Take the notifications of these documents, because no test is about them.
        notifications.take(services, portal.admin)
        yield made


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        """Log nothing, because the portal logs requests itself."""


@dataclass
class LightPortal:
    """A running portal. `chat` is its chat server; `requests` are the addresses that its windows
    requested, `refused` those that the content security policy blocked."""

    chat: FakeChat
    url: str
    services: Services
    browser: Browser
    requests: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    windows: list[PortalPages] = field(default_factory=list)
    browsers: dict[str, BrowserContext] = field(default_factory=dict)

    def plays(self, *scripts: Sequence[Step]) -> None:
        """Have the endpoint play one script per request, and then repeat the last."""
        self.chat.requests.clear()
        self.chat.left = 0
        self.chat.scripts = list(scripts)

    def open_window(
        self,
        language: str = "en",
        *,
        user: str = "admin",
        init_script: str | None = None,
        **wishes: Any,
    ) -> PortalPages:
        """Open a window with `user` signed in; `wishes` are options of the browser context."""
        key = repr((language, user, wishes))
        if key not in self.browsers:
            self.browsers[key] = self._open_browser(language, user, wishes)
        page = self.browsers[key].new_page()
        if init_script:
            page.add_init_script(init_script)
        self.windows.append(PortalPages(page))
        return self.windows[-1]

    def _open_browser(self, language: str, user: str, wishes: dict[str, Any]) -> BrowserContext:
        """Open a browser context, reused so that its cache stays warm."""
        context = self.browser.new_context(base_url=self.url, locale=language, **wishes)
        context.set_default_timeout(20_000)
        context.on("request", lambda request: self.requests.append(request.url))
        context.expose_function("portalTestRefused", self._refuse)
        context.add_init_script(
            "document.addEventListener('securitypolicyviolation', "
            "(event) => window.portalTestRefused(event.blockedURI))"
        )
        signed_in = accounts.find_user(self.services, user)
        token = Portal(self.services, signed_in).token(signed_in)
        context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": self.url}])
        return context

    def _refuse(self, address: str) -> None:
        self.refused.append(address)

    def close_windows(self) -> None:
        """Close all windows. Fail if a script failed in any of them."""
        errors = []
        while self.windows:
            window = self.windows.pop()
            window.page.close()
            errors += window.console_errors
        assert errors == []

    def close_browsers(self) -> None:
        while self.browsers:
            self.browsers.popitem()[1].close()

    def expect_nothing_to_go_on(self) -> None:
        """Wait until no request to the endpoint is open and no answer is being written."""
        wait_until(
            lambda: self.chat.active == 0 and self.services.answer_slots.taken == 0,
            within_s=20,
            complaint="the answer is still being written, though no page reads it",
        )

    def expect_no_threads_but(self, before: Set[threading.Thread]) -> None:
        """Wait until only these threads and those that live as long as the portal are left."""
        # Files stay open for a while after they were shown.
        self.services.page_readers.close()

        def left() -> list[str]:
            names = [thread.name for thread in set(threading.enumerate()) - before]
            return [name for name in names if not name.startswith(_NOT_THE_PORTALS)]

        wait_until(lambda: not left(), within_s=20, complaint="a thread was left behind")


@contextmanager
def light_portal(library: Library, browser: Browser, **overrides: object) -> Iterator[LightPortal]:
    """Run a portal until the end of the block. Fail if it leaves a thread behind."""
    with fake_chat() as chat, ExitStack() as stack:
        before = set(threading.enumerate())
        settings = {"provider": "openai", "api_base": chat.url, "model": "a-model"}
        # The browser, the portal and the endpoint share two processors, so allow more time.
        settings |= {"first_token_timeout_s": 8}
        services = build_services(library.settings(chat=settings, **overrides))
        stack.callback(services.database.dispose)
        stack.callback(services.chat.close)
        stack.callback(services.page_readers.close)
        server = make_server(
            "127.0.0.1", 0, create_app(services), threaded=True, request_handler=_Quiet
        )
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="web")
        thread.start()
        stack.callback(server.server_close)
        stack.callback(thread.join, 5)
        stack.callback(server.shutdown)
        portal = LightPortal(chat, f"http://127.0.0.1:{server.server_port}", services, browser)
        stack.callback(portal.expect_no_threads_but, before)
        stack.callback(portal.close_browsers)
        yield portal

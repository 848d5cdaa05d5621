"""Fixtures with a portal started by `portal serve` and a real Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

from bench.cluster.programs import free_port
from e2e.pages.portal import PortalPages

PASSWORD = "correct horse battery"
_START_TIMEOUT_S = 90
# The first search of a new process loads the model, and other tests keep the machine busy.
expect.set_options(timeout=20_000)
_CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Axe's best-practice rules go beyond WCAG and are not required.
_WCAG = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],
    "preload": False,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("portal").addoption(
        "--screenshots", action="store_true", help="keep pictures of every page in screenshots/"
    )


@pytest.fixture(scope="session")
def portal_url() -> Iterator[str]:
    """Start a portal with the bundled model and an empty data directory; yield its address."""
    directory = Path(tempfile.mkdtemp(prefix="portal-e2e-"))
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PORTAL_")}
    environment |= {"PORTAL_ADMIN_PASSWORD": PASSWORD, "PORTAL_CONFIG": os.devnull}
    environment |= {"PORTAL_DATA_DIR": str(directory / "data")}
    environment.pop("DATABASE_URL", None)
    log = (directory / "portal.log").open("wb")
    command = [str(Path(sys.executable).with_name("portal")), "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(url, process, directory / "portal.log")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)
        log.close()
        shutil.rmtree(directory, ignore_errors=True)


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)  # Whether a port is open can only be polled.
    pytest.fail(f"the portal did not start:\n{log.read_text(errors='replace')}")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    given = os.environ.get("CHROMIUM") or os.environ.get("PORTAL_TEST_CHROMIUM")
    found = given or next(filter(None, map(shutil.which, _CHROMIUM_NAMES)), None)
    if not found:
        pytest.fail("there is no Chromium: install Debian's package chromium, or set CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser(playwright: Playwright, chromium_path: str) -> Iterator[Browser]:
    browser = playwright.chromium.launch(
        executable_path=chromium_path,
        args=[
            "--no-sandbox",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    )
    yield browser
    browser.close()


OpenPortal = Callable[..., PortalPages]


@pytest.fixture
def open_portal(browser: Browser, portal_url: str) -> Iterator[OpenPortal]:
    """Return a function that opens a new browser window, with or without JavaScript."""
    contexts: list[BrowserContext] = []

    def open_window(language: str = "en", *, javascript: bool = True, **wishes: Any) -> PortalPages:
        context = browser.new_context(
            base_url=portal_url, locale=language, java_script_enabled=javascript, **wishes
        )
        context.set_default_timeout(20_000)
        contexts.append(context)
        return PortalPages(context.new_page())

    yield open_window
    for context in contexts:
        context.close()


@pytest.fixture
def assert_accessible() -> Callable[..., None]:
    """Return a function that fails if axe finds violations of WCAG 2.1 AA on the page, or in the
    element that the selector `within` matches."""

    def check(page: Page, within: str | None = None) -> None:
        # axe finds no document while one page replaces another.
        page.wait_for_load_state()
        results = Axe().run(page, context=within, options=_WCAG)
        assert results.violations_count == 0, results.generate_report()

    return check


@pytest.fixture
def check_page(assert_accessible: Callable[[Page], None]) -> Callable[[Page], None]:
    """Return a function that fails if a page is not accessible or wider than the window."""

    def check(page: Page) -> None:
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    return check

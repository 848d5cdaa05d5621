"""A whole journey, step by step, and what pages cost: requests, bytes and scripts.

`./run test --screenshots` saves screenshots of the steps and their figures in
`screenshots/journey/`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.chat import ChatPage
from e2e.pages.traffic import Traffic
from tests.factories import files

pytestmark = pytest.mark.e2e

MAX_REQUESTS, MAX_BYTES, MAX_SCRIPT_BYTES = 10, 150_000, 60_000
RULE = "The keeper of the west beacon is paid 5822 euros for each year of service."


def test_pages_cost_ten_requests_cold_and_one_warm(open_portal: OpenPortal) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    signed_in = portal.page.context.storage_state()
    for address in ("/", "/documents", "/search?q=beacon", "/chat", "/account", "/admin"):
        page = open_portal(storage_state=signed_in).page
        traffic = Traffic(page)
        page.goto(address)
        page.wait_for_load_state("networkidle")
        cold = traffic.take()
        # Suggestions poll until they are ready, so count addresses instead of requests.
        assert len(set(cold.requests)) <= MAX_REQUESTS, (address, cold.requests)
        assert cold.size_bytes <= MAX_BYTES, (address, cold)
        assert 0 < cold.script_bytes < MAX_SCRIPT_BYTES, (address, cold)
        page.goto(address)
        page.wait_for_load_state("networkidle")
        # The browser fetches the icon once, whenever it likes. What htmx requests, such as
        # suggestions that are still being made, is not part of the page.
        warm = [request for request in traffic.take().requests if not request.endswith(".svg")]
        assert len([one for one in warm if "/static/" in one or one == page.url]) == 1, warm


def test_journey_from_signing_in_to_reading_and_back(
    open_portal: OpenPortal, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    portal = open_portal(viewport={"width": 1440, "height": 900})
    page, chat = portal.page, ChatPage(portal.page)
    traffic = Traffic(page)
    is_asked = request.config.getoption("screenshots")
    folder = request.config.rootpath / "screenshots" / "journey"
    if is_asked:
        folder.mkdir(parents=True, exist_ok=True)
    beacons = files.write_pdf(tmp_path / "west beacon.pdf", [["Beacons"], ["Wages", RULE]])
    rows = ["| step | requests | kB | seconds |", "| --- | ---: | ---: | ---: |"]

    def step(name: str, act: Callable[[], object]) -> None:
        started = time.monotonic()
        act()
        seconds = time.monotonic() - started
        page.wait_for_load_state("networkidle" if is_asked else "load")
        if not is_asked:
            return
        page.screenshot(path=folder / f"{len(rows) - 1} {name}.png")
        taken = traffic.take()
        rows.append(
            f"| {name} | {len(taken.requests)} | {taken.size_bytes / 1000:.0f} | {seconds:.1f} |"
        )

    def upload() -> None:
        portal.upload(beacons)
        portal.wait_until_ready([beacons.stem])

    def sign_in() -> None:
        portal.fill_sign_in("admin", PASSWORD)
        page.wait_for_url("**/")

    step("the page to sign in", lambda: page.goto("/login"))
    step("sign in", sign_in)
    step("upload", upload)
    step("ask", lambda: chat.begin("How much is the keeper of the west beacon paid?"))
    marker = chat.answers.last.get_by_test_id("citation-marker").first
    step("open the citation", lambda: chat.open_sources(marker))
    opened = page.url
    step("read", page.get_by_test_id("source-link").first.click)
    page.locator("rect.quote").first.wait_for()
    step("back", page.go_back)
    assert page.url.startswith(opened)
    chat.panel.wait_for()
    if is_asked:
        (folder / "journey.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert portal.console_errors == []

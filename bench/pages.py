"""How soon pages respond at 50,000 documents, in Chromium: the interaction to next paint, as Web
Vitals counts it, and the time until the result is shown."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from playwright.sync_api import CDPSession, Page, expect, sync_playwright

from bench.corpus import Corpus
from bench.folders.filed import filed_copies
from bench.over_http import gunicorn
from portal.http.cookies import SESSION
from portal.services.people import accounts, sessions

GOAL_MS = 100
_ROUNDS = 25
_TOKEN_TTL_S = 7200
_READER = "files 100 %"
_TYPED = ("harbour lamps", "rules for leave", "海上灯塔", "safety of pumps")
# Keeps each event until its page is left. Those of less than 16 ms are not reported.
_OBSERVE = """
window.benchEvents = [];
new PerformanceObserver((list) => window.benchEvents.push(...list.getEntries())).observe(
  { type: "event", durationThreshold: 16, buffered: true });
"""
_TAKE = """async () => {
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 60)));
  const longest = {};
  for (const { interactionId: id, duration } of window.benchEvents.splice(0)) {
    if (id) longest[id] = Math.max(longest[id] ?? 0, duration);
  }
  return Object.values(longest);
}"""
_REPORTED_FROM_MS = 16.0
_SIZE: Any = {"width": 1440, "height": 900}
_BETWEEN_KEYS_MS = 80
_NICENESS = 10


@dataclass
class _Taken:
    """Milliseconds of one kind of interaction: to the next paint, to the result, and of processor
    time of the page's main thread, for everything that one key or click causes."""

    paints: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    thread: list[float] = field(default_factory=list)


def measure_pages(
    corpus: Corpus, data_dir: Path, *, rounds: int = _ROUNDS, log: Callable[[str], None]
) -> dict[str, Any]:
    """Return the times of interactions with the corpus in folders, ready for JSON."""
    log("copies")
    with filed_copies(corpus, data_dir) as (_, filed):
        services = filed.corpus.services
        token = sessions.token_for(
            services, accounts.find_user(services, _READER), ttl_s=_TOKEN_TTL_S
        )
        target = f"bench.promises:application({str(data_dir)!r}, {services.database.url!r})"
        with gunicorn(target, data_dir) as connection:
            # A user's browser has a machine of its own, so here it gets priority over the servers.
            for process in psutil.Process().children(recursive=True):
                process.nice(_NICENESS)
            url = f"http://127.0.0.1:{connection.port}"
            with _window(url, token) as page:
                rows = [
                    {"interaction": name, **_measure(interact, page, rounds, log, name)}
                    for name, interact in _INTERACTIONS.items()
                ]
    return {"documents": len(corpus.document_ids), "goal_ms": GOAL_MS, "rows": rows}


@contextmanager
def _window(url: str, token: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        window = browser.new_context(base_url=url, locale="en", viewport=_SIZE)
        window.add_cookies([{"name": SESSION, "value": token, "url": url}])
        window.add_init_script(_OBSERVE)
        window.set_default_timeout(30_000)
        yield window.new_page()
        browser.close()


def _measure(
    interact: Callable[[Page, int, _Taken], None],
    page: Page,
    rounds: int,
    log: Callable[[str], None],
    name: str,
) -> dict[str, Any]:
    log(name)
    taken = _Taken()
    interact(page, rounds, taken)
    return {
        "count": len(taken.paints),
        **_percentiles("paint", taken.paints),
        **_percentiles("shown", taken.shown),
        **_percentiles("thread", taken.thread),
    }


def _percentiles(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}_p{at}_ms": round(float(np.percentile(values, at)), 1) for at in (50, 95)}


def _take(page: Page, taken: _Taken, act: Callable[[], None], shown: Callable[[], None]) -> None:
    """Act once, and record how long the next paint and the result took."""
    page.evaluate(_TAKE)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    busy = _thread_ms(session)
    started = page.evaluate("performance.now()")
    act()
    shown()
    taken.shown.append(page.evaluate("performance.now()") - started)
    paints = page.evaluate(_TAKE) or [_REPORTED_FROM_MS]
    taken.paints += paints
    taken.thread.append((_thread_ms(session) - busy) / len(paints))
    session.detach()


def _thread_ms(session: CDPSession) -> float:
    """Return the processor time of the page's main thread so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(1000 * one["value"] for one in metrics if one["name"] == "TaskDuration")


def _open_citations(page: Page, rounds: int, taken: _Taken) -> None:
    page.goto("/chat")
    page.locator("#chat-input").fill(_TYPED[0])
    page.locator("#chat-input").press("Enter")
    page.wait_for_url("**/chat/*-*")
    page.locator("[data-role=assistant][data-status=done]").wait_for()
    marker = page.get_by_test_id("citation-marker").first
    source = page.locator("#chat-side").get_by_test_id("citation-source").first
    for _ in range(rounds):
        _take(page, taken, marker.click, source.wait_for)
        page.keyboard.press("Escape")
        source.wait_for(state="detached")


def _toggle(page: Page, rounds: int, taken: _Taken) -> None:
    page.goto("/documents")
    toggle = page.get_by_test_id("selection-toggle").first
    for _ in range(rounds):
        wanted = "true" if toggle.get_attribute("aria-checked") == "false" else "false"
        done = partial(expect(toggle).to_have_attribute, "aria-checked", wanted)
        _take(page, taken, toggle.click, done)


def _filter(page: Page, rounds: int, taken: _Taken) -> None:
    page.goto("/documents")
    order = page.get_by_label("Sort by")
    for number in range(rounds):
        # By keyboard: the browser draws the choices of a list itself, outside of the page.
        order.focus()
        press = partial(page.keyboard.press, "ArrowUp" if number % 2 else "ArrowDown")
        _take(page, taken, press, partial(page.wait_for_url, _other_than(page.url)))


def _type(page: Page, rounds: int, taken: _Taken) -> None:
    page.goto("/search")
    query = page.get_by_test_id("search-input")
    for number in range(max(1, rounds // 5)):
        text = f"{_TYPED[number % len(_TYPED)]} {number}"
        query.fill("")
        type_it = partial(query.press_sequentially, text, delay=_BETWEEN_KEYS_MS)
        _take(page, taken, type_it, partial(page.wait_for_url, f"**q=*+{number}"))


def _other_than(address: str) -> Callable[[str], bool]:
    return lambda url: url != address


_INTERACTIONS = {
    "opening a citation": _open_citations,
    "a switch in the list": _toggle,
    "another order of the list": _filter,
    "typing a search": _type,
}

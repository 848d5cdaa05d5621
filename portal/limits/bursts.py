"""How many requests of one user an endpoint works on at the same moment."""

from __future__ import annotations

from collections import Counter
from threading import Lock

from flask import Flask, g

from portal.errors import RateLimited
from portal.http import context
from portal.limits.callers import who_asks
from portal.limits.everyday import is_free, limit_name
from portal.settings import RateLimitSettings


def init_app(app: Flask, settings: RateLimitSettings) -> None:
    """Refuse requests beyond the burst of their endpoint. Each process counts its own."""
    running: Counter[tuple[str, str]] = Counter()
    lock = Lock()

    def enter() -> None:
        if not settings.enabled or is_free() or context.view() is None:
            return
        name = limit_name()
        burst = getattr(settings, f"{name}_burst")
        if not burst:
            return
        key = (name, who_asks())
        with lock:
            if running[key] >= burst:
                raise RateLimited(seconds=1)
            running[key] += 1
        g.burst = key

    def leave(_error: BaseException | None) -> None:
        key = g.pop("burst", None)
        if key is not None:
            with lock:
                running[key] -= 1
                if not running[key]:
                    del running[key]

    app.before_request(enter)
    app.teardown_request(leave)

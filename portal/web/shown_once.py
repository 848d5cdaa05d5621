"""Show a new secret once, on the page that its form redirects to.

An answer to the form itself would make another secret each time it is reloaded.
"""

from __future__ import annotations

from typing import Any

from portal.web import held

_NAME = "shown_once"


def hold(purpose: str, **values: Any) -> None:
    """Hold values of the template for the next page that takes those of `purpose`."""
    held.hold(_NAME, [purpose, values])


def take(purpose: str) -> dict[str, Any]:
    """Return the values that are held for this page and user, once; else nothing."""
    found = held.read(_NAME)
    if found is None or found[0] != purpose:
        return {}
    held.forget_once_shown(_NAME)
    values: dict[str, Any] = found[1]
    return values

"""Show a new secret once, on the page that its form redirects to.

Reloading a page that is the response to the form itself would create another secret.
"""

from __future__ import annotations

from typing import Any

from portal.web import held

_NAME = "shown_once"


def hold(purpose: str, **values: Any) -> None:
    """Hold template values for the next page that takes those of `purpose`."""
    held.hold(_NAME, [purpose, values])


def take(purpose: str) -> dict[str, Any]:
    """Return the values held for `purpose` and this user, once; empty if there are none."""
    found = held.read(_NAME)
    if found is None or found[0] != purpose:
        return {}
    held.forget_once_shown(_NAME)
    values: dict[str, Any] = found[1]
    return values

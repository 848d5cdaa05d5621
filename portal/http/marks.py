"""Marks of views: what a view declares for the hooks that run before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from portal.domain.people import Scope

View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Marks:
    """The declarations of a view; a view without marks has the defaults.

    `scope` is the scope that a token needs, by default read for safe methods and write for others;
    `writes` is true for a view with the scope `read` that writes nevertheless. `rate_limit` is a
    field of RateLimitSettings.
    """

    is_public: bool = False
    is_open: Callable[[], bool] | None = None
    is_for_enrolment: bool = False
    scope: Scope | None = None
    writes: bool = False
    checks_passwords: bool = False
    creates_accounts: bool = False
    confirms_password: bool = False
    needs_recent_sign_in: bool = False
    accepts_files: bool = False
    takes_one_by_one: bool = False
    body_is_optional: bool = False
    max_body_bytes: int = 256 * 1024
    max_values: int = 10_000
    rate_limit: str = "default"


class Mark:
    """A decorator that sets marks of a view."""

    def __init__(self, **marks: Any) -> None:
        self._marks = marks

    def __call__(self, view: View) -> View:
        vars(view)["marks"] = replace(marks_of(view), **self._marks)
        return view


def marks_of(view: Callable[..., Any] | None) -> Marks:
    """Return the marks of a view; the defaults for None, as at an unknown address."""
    return getattr(view, "marks", _UNMARKED)


_UNMARKED = Marks()

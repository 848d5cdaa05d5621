"""Blueprints of pages and fragments, which are not described at /openapi."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint

from portal.http.marks import Mark


class PageBlueprint(Blueprint):
    """A family of pages. All views get `mark`, such as `context.for_administrators`."""

    def __init__(
        self, name: str, import_name: str, url_prefix: str | None = None, mark: Mark | None = None
    ) -> None:
        super().__init__(name, import_name, url_prefix=url_prefix)
        self._mark = mark

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Callable[..., Any] | None = None,
        provide_automatic_options: bool | None = None,
        **options: Any,
    ) -> None:
        if self._mark is not None and view_func is not None:
            self._mark(view_func)
        super().add_url_rule(rule, endpoint, view_func, provide_automatic_options, **options)

"""The routes of the application, as OpenAPI describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flask import Flask
from werkzeug.routing import Rule

from portal.http import context
from portal.http.marks import marks_of


@dataclass(frozen=True)
class Route:
    """One method of one address."""

    path: str
    method: str
    endpoint: str
    uuid_arguments: frozenset[str]
    is_public: bool
    shares_view: bool
    scope: str
    body_is_optional: bool
    needs_recent_sign_in: bool

    @property
    def is_limited(self) -> bool:
        """Return whether the request is counted. Public reads, such as health, are not."""
        return not (self.is_public and self.method == "get")


def list_routes(app: Flask) -> Iterator[Route]:
    """Yield every method of every rule, with its path in OpenAPI's notation."""
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        marks = marks_of(view)
        methods = sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        for method in methods:
            yield Route(
                path=openapi_path(rule),
                method=method.lower(),
                endpoint=rule.endpoint,
                uuid_arguments=frozenset(
                    name
                    for name, converter in rule._converters.items()  # noqa: SLF001 - no other way
                    if type(converter).__name__ == "UUIDConverter"
                ),
                is_public=marks.is_public,
                shares_view=len(methods) > 1,
                scope=context.scope_of(view, method).value,
                body_is_optional=marks.body_is_optional,
                needs_recent_sign_in=marks.needs_recent_sign_in,
            )


def openapi_path(rule: Rule) -> str:
    """Return `/documents/{document_id}` for `/documents/<uuid:document_id>`."""
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)

"""The page that tells programmers what the JSON endpoints take and give.

It is made of the OpenAPI document itself, on the server: it needs no script, nothing from
elsewhere and no exception from the policy on scripts (docs/adr/0018).
"""

from __future__ import annotations

from typing import Any, cast

from apiflask import APIBlueprint, APIFlask
from flask import current_app, render_template
from markupsafe import Markup

from portal.http import context, hosts
from portal.web.i18n import language
from portal.web.operations import api_reference

blueprint = APIBlueprint("api_docs", __name__, enable_openapi=False)


@blueprint.get("/docs")
@context.public
def show() -> str:
    return render_template(
        "pages/api_docs.html", reference=_reference(), portal_url=hosts.public_url()
    )


def _reference() -> Markup:
    """What is the same for every reader of a language: made once, for it is long."""
    made: dict[str, Markup] = current_app.extensions.setdefault("api_docs", {})
    if language() not in made:
        spec = cast("dict[str, Any]", cast("APIFlask", current_app).spec)
        made[language()] = Markup(  # noqa: S704 - a template of ours made it, and escaped it
            render_template(
                "fragments/api_docs/_reference.html",
                info=spec["info"],
                groups=api_reference.read(spec),
            )
        )
    return made[language()]


def init_app(app: APIFlask) -> None:
    app.jinja_env.filters["code_spans"] = code_spans


def code_spans(text: str) -> list[tuple[bool, str]]:
    """(is code, text) in turn: what stands between backticks is code."""
    return [(index % 2 == 1, part) for index, part in enumerate(text.split("`")) if part]

"""The layout around every page: user, language, theme, navigation."""

from __future__ import annotations

from typing import Any, cast

from flask import Flask, flash, has_request_context, json, redirect, render_template, request
from werkzeug.wrappers import Response

from portal.domain.people import User
from portal.errors import N_, PortalError
from portal.http import context, cookies
from portal.http.messages import error_message
from portal.web import assets
from portal.web.i18n import LANGUAGES, language
from portal.web.security import next_path

# What a view returns.
Answer = Response | str | tuple[str, int] | tuple[str, int, dict[str, str]]

# Headers for a form with an error, which replaces the form in the dialog.
IN_DIALOG = {"HX-Retarget": "#dialog-content", "HX-Reswap": "innerHTML"}

THEMES = {
    "auto": N_("System default"),
    "light": N_("Light"),
    "dark": N_("Dark"),
    "contrast": N_("High contrast"),
}


HTMX_SETTINGS = {
    # The content security policy forbids these. Cached pages must not outlive a sign-out.
    "includeIndicatorStyles": False,
    "allowEval": False,
    "allowScriptTags": False,
    "historyCacheSize": 0,
    # Going back reloads the page, so that scripts find it in the state they expect.
    "refreshOnHistoryMiss": True,
    "selfRequestsOnly": True,
    "scrollBehavior": "auto",
    # During a settle delay, swapped-in links and forms are not yet handled by HTMX: a click would
    # leave the page.
    "defaultSettleDelay": 0,
    # Errors are swapped in too: their HX-Retarget header names the element.
    "responseHandling": [
        {"code": "204", "swap": False},
        {"code": "[23]..", "swap": True},
        {"code": "[45]..", "swap": True, "error": True},
    ],
}


def theme() -> str:
    """Return the chosen theme; by default `auto`, the system's."""
    chosen = cookies.get_cookie(cookies.THEME) or "auto"
    return chosen if chosen in THEMES else "auto"


def viewer() -> User | None:
    """Return the signed-in user; None for users who must set up a second factor first, since pages
    must not show them any data yet."""
    signed_in = context.signed_in()
    return signed_in.user if signed_in and not signed_in.must_enrol else None


def wants_fragment(target: str | None = None) -> bool:
    """Return whether HTMX requests a fragment; `target` is the id of the element to replace.

    When the user goes back in history, HTMX needs the whole page.
    """
    if request.headers.get("HX-Request") != "true":
        return False
    if request.headers.get("HX-History-Restore-Request") == "true":
        return False
    return target is None or request.headers.get("HX-Target") == target


def fragments(*parts: tuple[str, dict[str, Any]]) -> str:
    """Join fragments in one response: the first for the target, the others out of band."""
    return "\n".join(render_template(name, **values) for name, values in parts)


def render_form(template: str, error: PortalError | None, **values: Any) -> Answer:
    """Render a page with a form; an error adds its message as `error`, and its status."""
    page = render_template(template, error=error_message(error) if error else "", **values)
    return (page, error.status) if error else page


def toast(message: str, *, kind: str = "info", **values: Any) -> tuple[str, dict[str, Any]]:
    """Return the fragment of a toast; `kind` is `success`, `info` or `error`."""
    return "fragments/layout/_toast_out_of_band.html", {"message": message, "kind": kind, **values}


def removal_fragment(element_id: str) -> tuple[str, dict[str, Any]]:
    """Return the fragment that removes a row from its list."""
    return "fragments/layout/_gone.html", {"element_id": element_id}


def remember(message: str, *, kind: str = "info", **values: str) -> None:
    """Show a toast on the next page, for responses that redirect."""
    # Flask accepts any JSON value here, though its types say str.
    flash(cast("str", {"message": message, **values}), kind)


def see_other(
    address: str, message: str | None = None, *, kind: str = "success", **values: str
) -> Response:
    """Redirect to a page after handling a form; a `message` is shown there as a toast."""
    if message is not None:
        remember(message, kind=kind, **values)
    return redirect(address, code=303)


def go_back(otherwise: str, message: str | None = None, *, kind: str = "success") -> Response:
    """Redirect as `see_other` does, to the page in the field `next` or else to `otherwise`."""
    return see_other(next_path() or otherwise, message, kind=kind)


def init_app(app: Flask) -> None:
    assets.init_app(app)
    app.jinja_env.globals.update(
        htmx_settings=json.dumps(HTMX_SETTINGS, separators=(",", ":")),
        languages=LANGUAGES,
        themes=THEMES,
        wants_fragment=wants_fragment,
    )
    app.context_processor(_page_context)


def _page_context() -> dict[str, Any]:
    if not has_request_context():
        return {}
    return {
        "viewer": viewer(),
        "language": language(),
        "theme": theme(),
        "here": request.full_path.rstrip("?") if request.method == "GET" else "/documents",
        "section": request.blueprint or "",
    }

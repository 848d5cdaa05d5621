"""The switches for language and theme, which work before anyone signs in."""

from __future__ import annotations

from flask import request
from werkzeug.wrappers import Response as AnyResponse

from portal.errors import InvalidInput, verbatim
from portal.http import context, cookies
from portal.services.people import accounts
from portal.web.blueprint import PageBlueprint
from portal.web.i18n import LANGUAGES
from portal.web.layout import THEMES, go_back, viewer

COOKIE_LIFE_S = 365 * 24 * 3600

blueprint = PageBlueprint("preferences", __name__, "/preferences", context.public)


@blueprint.post("/language")
def set_language() -> AnyResponse:
    return save(go_back("/"), language=request.form.get("language", ""))


@blueprint.post("/theme")
def set_theme() -> AnyResponse:
    return save(go_back("/"), theme=request.form.get("theme", ""))


def save(
    response: AnyResponse, *, language: str | None = None, theme: str | None = None
) -> AnyResponse:
    """Save the given values in cookies of the response, and the language also in the account.
    Raises InvalidInput for unknown values."""
    if language is not None and language not in LANGUAGES:
        raise InvalidInput(verbatim("language"))
    if theme is not None and theme not in THEMES:
        raise InvalidInput(verbatim("theme"))
    user = viewer()
    if language is not None:
        if user is not None:
            accounts.set_language(context.services(), user, language)
        cookies.set_cookie(response, cookies.LANGUAGE, language, max_age=COOKIE_LIFE_S)
    if theme is not None:
        cookies.set_cookie(response, cookies.THEME, theme, max_age=COOKIE_LIFE_S)
    return response

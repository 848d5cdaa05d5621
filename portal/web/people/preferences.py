"""The switches for language and theme, which work before anyone signs in."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import request
from werkzeug.wrappers import Response as AnyResponse

from portal.errors import InvalidInput, verbatim
from portal.http import context, cookies
from portal.services.people import accounts
from portal.web.i18n import LANGUAGES
from portal.web.layout import THEMES, see_other, viewer
from portal.web.security import next_path

COOKIE_LIFE_S = 365 * 24 * 3600

blueprint = APIBlueprint("preferences", __name__, enable_openapi=False, url_prefix="/preferences")


@blueprint.post("/language")
@context.public
def set_language() -> AnyResponse:
    chosen = request.form.get("language", "")
    if chosen not in LANGUAGES:
        raise InvalidInput(reason=verbatim("language"))
    user = viewer()
    if user is not None:
        accounts.set_language(context.services(), user, chosen)
    response = _back()
    cookies.set_cookie(response, cookies.LANGUAGE, chosen, max_age=COOKIE_LIFE_S)
    return response


@blueprint.post("/theme")
@context.public
def set_theme() -> AnyResponse:
    chosen = request.form.get("theme", "")
    if chosen not in THEMES:
        raise InvalidInput(reason=verbatim("theme"))
    response = _back()
    cookies.set_cookie(response, cookies.THEME, chosen, max_age=COOKIE_LIFE_S)
    return response


def _back() -> AnyResponse:
    return see_other(next_path() or "/")

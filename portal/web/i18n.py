"""The language and time zone of the user.

The account's language comes first, then the language switch (kept in a cookie for users who are not
signed in), then the languages that the browser accepts.
"""

from __future__ import annotations

from typing import Any

from babel.dates import get_timezone
from babel.support import NullTranslations
from flask import Flask, g, request
from flask_babel import Babel, Domain, get_locale
from flask_login import AnonymousUserMixin

from portal.http import context

TIMEZONE_COOKIE = "portal_timezone"
LANGUAGES = {"zh-CN": "简体中文", "en": "English"}
LOCALES = {"zh-CN": "zh_Hans_CN", "en": "en"}


class CommittedTranslations(Domain):  # type: ignore[misc] # flask-babel has no types
    """Serve translations compiled from the committed .po files; there are no .mo files."""

    def __init__(self) -> None:
        # Imported here, so that `python -m portal.web.translations` does not import itself twice.
        from portal.web import translations

        super().__init__()
        self._catalogs = translations.load()

    def get_translations(self) -> NullTranslations:
        return self._catalogs.get(str(get_locale()), NullTranslations())


class CommittedBabel(Babel):  # type: ignore[misc] # flask-babel has no types
    domain_instance = None

    def init_app(self, app: Flask, *args: Any, **kwargs: Any) -> None:
        super().init_app(app, *args, **kwargs)
        self.domain_instance = CommittedTranslations()


def init_app(app: Flask) -> None:
    babel = CommittedBabel()
    babel.init_app(app, locale_selector=_locale, timezone_selector=_timezone)
    app.jinja_env.globals["sentence_gap"] = sentence_gap


def load_reader() -> None:
    """Load the signed-in user. If that fails, treat the reader as anonymous, so that the error
    message can still be shown in some language."""
    try:
        context.signed_in()
    except Exception:  # noqa: BLE001 - it is in the log already
        g._login_user = AnonymousUserMixin()  # noqa: SLF001 - where flask-login keeps it


def _locale() -> str:
    load_reader()
    return LOCALES.get(context.language(), "en")


def language() -> str:
    """Return the page's language, `zh-CN` or `en`, for its `lang` attribute."""
    return "en" if str(get_locale()) == "en" else "zh-CN"


def sentence_gap() -> str:
    """Return the space between two sentences: none in Chinese, whose full stop is wide."""
    return " " if language() == "en" else ""


def is_timezone_known() -> bool:
    """Tell whether times are shown in the browser's zone; before its first page they are in UTC."""
    return _timezone() is not None


def _timezone() -> str | None:
    """Return the browser's time zone from its cookie; None stands for UTC."""
    name = request.cookies.get(TIMEZONE_COOKIE, "")
    try:
        get_timezone(name)
    except (LookupError, ValueError):
        return None
    return name or None

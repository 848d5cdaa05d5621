"""Pages, the fragments that HTMX swaps into them, and their headers."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import KeysView, MutableMapping
from pathlib import Path
from typing import Any

from apiflask import APIFlask
from flask.templating import Environment
from jinja2 import FileSystemLoader, StrictUndefined

from portal.web import assets, errors, go, home, i18n, layout, presenters, security
from portal.web.answers import chat, citations, messages, rendering, sharing
from portal.web.documents import bulk, job_words, jobs, listing, selection, trash, uploads
from portal.web.documents.folders import forms as folders
from portal.web.documents.folders import sources
from portal.web.documents.reading import document as reading
from portal.web.documents.reading import page_views, revisions
from portal.web.operations import (
    admin,
    answer_settings,
    api_docs,
    audit_pages,
    job_pages,
    model_pages,
    overview_pages,
    question_pages,
    search_settings,
)
from portal.web.people import (
    account,
    confirming,
    groups,
    notifications,
    oidc,
    preferences,
    sessions,
    sign_in,
    users,
)
from portal.web.people.second_factors import enrolment as second_factors
from portal.web.people.second_factors import second_step
from portal.web.search import pages, previews, saved_searches

TEMPLATES = Path(__file__).parents[2] / "templates"

BLUEPRINTS = (
    assets.blueprint,
    sign_in.blueprint,
    second_step.blueprint,
    oidc.blueprint,
    preferences.blueprint,
    home.blueprint,
    go.blueprint,
    listing.blueprint,
    folders.blueprint,
    sources.blueprint,
    bulk.blueprint,
    jobs.blueprint,
    notifications.blueprint,
    uploads.blueprint,
    reading.blueprint,
    page_views.blueprint,
    revisions.blueprint,
    pages.blueprint,
    previews.blueprint,
    saved_searches.blueprint,
    selection.blueprint,
    chat.blueprint,
    messages.blueprint,
    citations.blueprint,
    sharing.blueprint,
    trash.blueprint,
    account.blueprint,
    confirming.blueprint,
    sessions.blueprint,
    second_factors.blueprint,
    admin.blueprint,
    overview_pages.blueprint,
    users.blueprint,
    groups.blueprint,
    job_pages.blueprint,
    model_pages.blueprint,
    search_settings.blueprint,
    answer_settings.blueprint,
    question_pages.blueprint,
    audit_pages.blueprint,
    api_docs.blueprint,
)


class _Globals(ChainMap[str, Any]):
    """Global names of templates. At each import Jinja subtracts one set of names from another,
    which is slow for the keys of a ChainMap."""

    def keys(self) -> KeysView[str]:
        return {name: None for mapping in self.maps for name in mapping}.keys()


class _Environment(Environment):
    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return _Globals({} if d is None else d, self.globals)


def register(app: APIFlask) -> None:
    """Add the pages, their templates, languages, headers and error pages to `app`."""
    app.jinja_loader = FileSystemLoader(TEMPLATES)
    app.jinja_environment = _Environment
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    # A misspelt name in a template fails its test instead of leaving a gap in a page.
    app.jinja_env.undefined = StrictUndefined
    i18n.init_app(app)
    security.init_app(app)
    presenters.init_app(app)
    job_words.init_app(app)
    page_views.init_app(app)
    rendering.init_app(app)
    selection.init_app(app)
    layout.init_app(app)
    notifications.init_app(app)
    app.register_error_handler(Exception, errors.respond)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)

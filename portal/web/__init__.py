"""Everything a person sees: pages, the fragments that HTMX swaps into them, and their headers."""

from __future__ import annotations

from pathlib import Path

from apiflask import APIFlask
from jinja2 import FileSystemLoader, StrictUndefined

from portal.web import (
    account,
    admin,
    admin_jobs,
    admin_models,
    admin_search,
    answers,
    api_docs,
    assets,
    chat,
    citations,
    document_jobs,
    documents,
    errors,
    i18n,
    job_words,
    layout,
    messages,
    notifications,
    preferences,
    presenters,
    reading,
    revisions,
    search,
    security,
    selection,
    sign_in,
    trash,
    uploads,
)

TEMPLATES = Path(__file__).parents[2] / "templates"

BLUEPRINTS = (
    assets.blueprint,
    sign_in.blueprint,
    preferences.blueprint,
    documents.blueprint,
    document_jobs.blueprint,
    notifications.blueprint,
    uploads.blueprint,
    reading.blueprint,
    revisions.blueprint,
    search.blueprint,
    selection.blueprint,
    chat.blueprint,
    messages.blueprint,
    citations.blueprint,
    trash.blueprint,
    account.blueprint,
    admin.blueprint,
    admin_jobs.blueprint,
    admin_models.blueprint,
    admin_search.blueprint,
    api_docs.blueprint,
)


def register(app: APIFlask) -> None:
    """Add the pages, their templates, languages, headers and error pages to `app`."""
    app.jinja_loader = FileSystemLoader(TEMPLATES)
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    # A misspelt name in a template is an error in its test, not a gap in someone's page.
    app.jinja_env.undefined = StrictUndefined
    i18n.init_app(app)
    security.init_app(app)
    presenters.init_app(app)
    job_words.init_app(app)
    answers.init_app(app)
    selection.init_app(app)
    layout.init_app(app)
    notifications.init_app(app)
    api_docs.init_app(app)
    app.register_error_handler(Exception, errors.respond)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)

"""An application with the pages, but without services behind it."""

from __future__ import annotations

import pytest
from apiflask import APIFlask

from portal import web
from portal.http import context
from portal.http.responses import compression
from portal.services import Services
from portal.settings import Settings
from portal.store.session import Database


@pytest.fixture(scope="session")
def app() -> APIFlask:
    """Return an application for requests that need no database."""
    services = Services(
        settings=Settings(),
        # It connects on first use, which never happens here.
        database=Database("postgresql://nobody@127.0.0.1:9/none"),
        embedder=None,
        calibration=None,
        chat=None,
        secret_key="of no consequence",
    )
    application = APIFlask("portal", json_errors=False, static_folder=None, docs_path=None)
    application.secret_key = services.secret_key
    compression.init_app(application)
    context.init_app(application, services)
    context.require_login(application)
    web.register(application)
    return application

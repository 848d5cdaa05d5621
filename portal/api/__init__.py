"""The JSON API for programs: a blueprint per family of endpoints, described at /openapi."""

from __future__ import annotations

from typing import Any

from apiflask import APIFlask
from flask import current_app

from portal.api import errors, openapi
from portal.api.answers import conversations, sharing
from portal.api.documents import (
    bulk,
    chunks,
    documents_v1,
    folder_sources,
    folders,
    jobs,
    knowledge,
    notifications,
    revisions,
    selection,
)
from portal.api.operations import audit, ops
from portal.api.people import (
    auth,
    groups,
    oidc_logout,
    personal_tokens,
    second_factors,
    sessions,
    users,
)
from portal.api.search import chunk_search, semantic
from portal.http import context

BLUEPRINTS = (
    auth.blueprint,
    personal_tokens.blueprint,
    sessions.blueprint,
    second_factors.blueprint,
    second_factors.admin_blueprint,
    oidc_logout.blueprint,
    users.blueprint,
    groups.blueprint,
    knowledge.blueprint,
    folders.blueprint,
    folder_sources.blueprint,
    bulk.blueprint,
    revisions.blueprint,
    jobs.blueprint,
    notifications.blueprint,
    selection.blueprint,
    conversations.blueprint,
    sharing.blueprint,
    chunks.blueprint,
    chunk_search.blueprint,
    documents_v1.blueprint,
    semantic.blueprint,
    ops.blueprint,
    audit.blueprint,
)

# Paths for programs: errors under them are JSON.
PREFIXES = ("/api/", "/v1/", "/health", "/metrics", "/openapi", "/oidc/backchannel-logout")


def register(app: APIFlask) -> None:
    """Add the JSON endpoints to `app`."""
    app.security_schemes = {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    }
    app.spec_callback = _complete_spec
    openapi.init_app(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    context.public(app.view_functions["openapi.spec"])
    errors.init_app(app, PREFIXES)


def _complete_spec(spec: Any) -> Any:
    """Add to the OpenAPI document what cannot be derived from the views."""
    knowledge.describe_upload(spec)
    revisions.describe_upload(spec)
    return openapi.complete(spec, current_app)


__all__ = ["BLUEPRINTS", "PREFIXES", "errors", "register"]

"""What programs use: JSON, one blueprint a family of endpoints, described at /openapi."""

from __future__ import annotations

from typing import Any

from apiflask import APIFlask

from portal import context
from portal.api import auth, conversations, errors, knowledge, ops, schemas, selection

BLUEPRINTS = (
    auth.blueprint,
    knowledge.blueprint,
    selection.blueprint,
    conversations.blueprint,
    ops.blueprint,
)

# Everything under these is for programs: errors there are JSON.
PREFIXES = ("/api/", "/v1/", "/health", "/metrics", "/openapi")


def register(app: APIFlask) -> None:
    """Add the JSON endpoints to `app`."""
    app.security_schemes = {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    }
    app.spec_callback = _complete_spec
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    context.public(app.view_functions["openapi.spec"])
    errors.init_app(app, PREFIXES)


def _complete_spec(spec: Any) -> Any:
    """What APIFlask cannot know from the views alone."""
    schemas.complete_spec(spec)
    knowledge.describe_upload(spec)
    return spec


__all__ = ["BLUEPRINTS", "PREFIXES", "errors", "register"]

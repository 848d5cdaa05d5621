"""What programs use: JSON, one blueprint a family of endpoints, described at /openapi."""

from __future__ import annotations

from apiflask import APIFlask

from portal import context
from portal.api import auth, errors, knowledge, ops

BLUEPRINTS = (auth.blueprint, knowledge.blueprint, ops.blueprint)

# Everything under these is for programs: errors there are JSON.
PREFIXES = ("/api/", "/v1/", "/health", "/metrics", "/openapi")


def register(app: APIFlask) -> None:
    """Add the JSON endpoints to `app`."""
    app.security_schemes = {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    }
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    context.public(app.view_functions["openapi.spec"])
    errors.init_app(app, PREFIXES)


__all__ = ["BLUEPRINTS", "PREFIXES", "errors", "register"]

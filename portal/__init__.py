"""The knowledge portal. `create_app` registers blueprints, nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from apiflask import APIFlask

    from portal.services import Services

# Several threads and processes multiply small matrices at once. With more than one thread for a
# product they wait for each other: two answers at a time took three times as long. numpy reads
# this when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def create_app(services: Services | None = None) -> APIFlask:
    """Create the WSGI application. Imports stay inside: the command line starts without Flask."""
    from apiflask import APIFlask
    from werkzeug.middleware.proxy_fix import ProxyFix

    from portal import api, limits, web
    from portal.container import build_services
    from portal.http import context, credentials, incoming, monitoring, recent_sign_in
    from portal.http.responses import compression

    services = services or build_services()
    app = APIFlask(
        "portal",
        title="Knowledge portal",
        version="1",
        spec_path="/openapi",
        docs_path=None,
        json_errors=False,
        static_folder=cast("str", None),  # Pages bring their own static route, with hashes.
        template_folder=cast("str", None),
    )
    settings = services.settings
    app.config.update(
        SECRET_KEY=services.secret_key,
        SECRET_KEY_FALLBACKS=services.secret_keys[:-1],
        WTF_CSRF_SECRET_KEY=services.secret_keys,
        # Views that take more, such as files, report it (`limits.bodies`).
        MAX_CONTENT_LENGTH=256 * 1024,
        MAX_FORM_MEMORY_SIZE=1024 * 1024,
    )
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    compression.init_app(app)
    monitoring.init_app(app)
    context.init_app(app, services)
    incoming.init_app(app)
    credentials.init_app(app)
    limits.init_app(app, services)
    context.require_login(app)
    web.register(app)
    recent_sign_in.init_app(app)
    api.register(app)
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops
        )
    return app

"""Static files under addresses that change with their content, so that browsers cache them.

All files share one digest, so that style sheets can refer to images by relative paths, without a
build step. The style sheets of all pages are one bundle, and so are the scripts. htmx and Swagger
UI come from the static files of packages, which are never imported.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache, lru_cache
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path

from flask import Flask, Response, send_from_directory, url_for

from portal.errors import NotFound
from portal.http import context
from portal.http.responses import compression
from portal.web.blueprint import PageBlueprint
from portal.web.bundling import bundle_scripts, bundle_styles

STATIC = Path(__file__).parents[2] / "static"
VENDOR = {
    "htmx.js": ("django_htmx", "static/django_htmx/htmx-2.min.js"),
    "swagger-ui.js": ("flask_swagger_ui", "dist/swagger-ui-bundle.js"),
    "swagger-ui.css": ("flask_swagger_ui", "dist/swagger-ui.css"),
}
SHEETS = (
    "tokens",
    "base",
    "layout",
    "controls",
    "documents",
    "folders",
    "search",
    "reading",
    "pages",
    "revisions",
    "chat",
    "home",
    "citations",
    "go",
    "admin",
    "notices",
    "print",
)
BUNDLES = {"app.css": "text/css", "app.js": "text/javascript"}
YEAR_S = 365 * 24 * 3600

blueprint = PageBlueprint("assets", __name__, "/static", context.public)


@cache
def vendor_file(name: str) -> Path:
    """Return the path of a file of VENDOR. Raises ModuleNotFoundError without its package."""
    package, path = VENDOR[name]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed: its static files are needed")
    return Path(spec.origin).parent / path


@cache
def bundle(name: str) -> bytes:
    """Return the content of a file of BUNDLES."""
    if name == "app.js":
        return bundle_scripts(STATIC / "js/main.js").encode()
    return bundle_styles([STATIC / f"css/{sheet}.css" for sheet in SHEETS]).encode()


@cache
def digest() -> str:
    """Return twelve hexadecimal digits that change with any static file."""
    content = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            content.update(path.relative_to(STATIC).as_posix().encode() + b"\0")
            content.update(path.read_bytes())
    for name in BUNDLES:
        content.update(bundle(name))
    for name in VENDOR:
        content.update(vendor_file(name).read_bytes())
    return content.hexdigest()[:12]


def asset(path: str) -> str:
    """Return the address of one of our static files."""
    return url_for("assets.own", version=digest(), path=path)


def vendor_asset(name: str) -> str:
    """Return the address of a package's static file."""
    return url_for("assets.vendor", version=digest(), name=name)


@blueprint.get("/<version>/<path:path>")
def own(version: str, path: str) -> Response:
    if path in BUNDLES:
        return _let_keep(Response(bundle(path), mimetype=BUNDLES[path]), version)
    return _let_keep(send_from_directory(STATIC, path), version)


@blueprint.get("/vendor/<version>/<name>")
def vendor(version: str, name: str) -> Response:
    if name not in VENDOR:
        raise NotFound
    path = vendor_file(name)
    return _let_keep(send_from_directory(path.parent, path.name), version)


def _let_keep(response: Response, version: str) -> Response:
    """Let browsers cache a response; compress it only once."""
    response.vary.add("Accept-Encoding")
    is_whole = response.status_code == HTTPStatus.OK
    if is_whole and response.mimetype in compression.TYPES and compression.accepts_gzip():
        response.direct_passthrough = False
        compression.use_gzip(response, _compress(response.get_data()))
    # A page that is still open may request an older digest: it gets the current file, but must not
    # cache it under that address.
    response.headers["Cache-Control"] = (
        f"public, max-age={YEAR_S}, immutable" if version == digest() else "no-cache"
    )
    return response


@lru_cache(maxsize=64)
def _compress(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def init_app(app: Flask) -> None:
    app.jinja_env.globals.update(asset=asset, vendor_asset=vendor_asset)

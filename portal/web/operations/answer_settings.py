"""Settings of the answering model: connect an endpoint, test it, choose it, see its failures."""

from __future__ import annotations

from typing import Any

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.answering.writing.endpoints import SERVERS
from portal.errors import PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.answers import writers
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other

blueprint = PageBlueprint("admin_answers", __name__, "/admin/answers", context.for_administrators)


@blueprint.get("")
def show() -> Answer:
    return _page()


@blueprint.post("/endpoint")
@require_recent_sign_in
def connect() -> Answer:
    """Store the endpoint, even if its models cannot be listed."""
    address, key = request.form.get("api_base", ""), request.form.get("api_key", "")
    try:
        endpoint = writers.connect(*context.caller(), address, key)
    except PortalError as error:
        return _page(address_error=error_message(error), api_base=address), error.status
    return _done(gettext("Connected. Models found: %(count)s.", count=len(endpoint.models)))


@blueprint.post("/endpoint/remove")
@require_recent_sign_in
def disconnect() -> Answer:
    writers.disconnect(*context.caller())
    return _done(gettext("Endpoint and key removed."))


@blueprint.post("/models")
def load_models() -> Answer:
    try:
        endpoint = writers.load_models(*context.caller())
    except PortalError as error:
        return _page(address_error=error_message(error)), error.status
    return _done(gettext("Models found: %(count)s.", count=len(endpoint.models)))


@blueprint.post("/test")
def try_out() -> Answer:
    model = request.form.get("model", "")
    try:
        trial = writers.try_out(*context.caller(), model, context.language())
    except PortalError as error:
        return _page(model=model, error=error_message(error)), error.status
    return _page(model=model, trial=trial)


@blueprint.post("/writer")
@require_recent_sign_in
def choose() -> Answer:
    services, user = context.caller()
    try:
        match request.form.get("writer"):
            case "quotations":
                writers.choose_quotations(services, user)
            case "settings":
                writers.follow_settings(services, user)
            case _:
                writers.choose_model(services, user, request.form.get("model", ""))
    except PortalError as error:
        return _page(error=error_message(error)), error.status
    return _done(gettext("Saved. It applies from the next answer on."))


def _done(message: str) -> Answer:
    return see_other(url_for("admin_answers.show"), message)


def _page(**changes: Any) -> str:
    services, user = context.caller()
    overview = writers.show(services, user)
    uses, failures = writers.list_uses(services, user)
    preset = request.args.get("server", "")
    chosen = next((server.api_base for server in SERVERS if server.id == preset), None)
    endpoint, writer = overview.endpoint, overview.chosen
    values = {
        "overview": overview,
        "servers": SERVERS,
        "uses": uses,
        "failures": failures,
        "api_base": chosen or (endpoint.api_base if endpoint else ""),
        "model": (writer.model if writer else None) or "",
        "trial": None,
        "error": None,
        "address_error": None,
    }
    return render_template("pages/operations/admin_answers.html", **(values | changes))

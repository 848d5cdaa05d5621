"""For operators: is the portal alive, and what is its search made of."""

from __future__ import annotations

from typing import Any

from apiflask import APIBlueprint
from flask import jsonify
from flask.typing import ResponseReturnValue

from portal import context
from portal.services import health

blueprint = APIBlueprint("ops", __name__, tag="Operations")


@blueprint.get("/health")
@blueprint.doc(
    summary="Whether the portal and its database answer",
    responses={200: "it does", 503: "it does not"},
)
@context.public
def show_health() -> ResponseReturnValue:
    status = health.check(context.services())
    return jsonify(status), 200 if status["status"] == "ok" else 503


@blueprint.get("/health/vector_store")
@blueprint.doc(
    summary="Extensions, indexes and counts behind search",
    responses={200: "what search is made of", 503: "the database does not answer"},
)
@context.public
def show_vector_store() -> ResponseReturnValue:
    status: dict[str, Any] = health.check_vector_store(context.services())
    return jsonify(status), 200 if status["status"] != "unavailable" else 503

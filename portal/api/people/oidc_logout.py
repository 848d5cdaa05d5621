"""Receive sign-outs from the OpenID Connect provider."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import request

from portal.http import context
from portal.services.people.federation import oidc_sign_ins

# Not described at /openapi: it is for the provider, and OpenID Connect specifies it.
blueprint = APIBlueprint("oidc_logout", __name__, url_prefix="/oidc", enable_openapi=False)


@blueprint.post("/backchannel-logout")
@context.public
def end_sessions() -> str:
    """End sessions by OpenID Connect Back-Channel Logout 1.0, authenticated by the token in the
    body."""
    oidc_sign_ins.end_by_logout_token(context.services(), request.form.get("logout_token", ""))
    return ""

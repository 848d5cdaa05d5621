"""Errors of requests: hosts, bodies and limits."""

from __future__ import annotations

from portal.errors.base import Forbidden, MalformedRequest, PortalError
from portal.errors.messages import N_

# A message on the line of its name keeps this list short.
# fmt: off


class UntrustedHost(MalformedRequest):
    message = N_("This portal does not answer to the name “%(host)s”. Use the address that your "
                 "administrator gave you. Administrators: add the name to PORTAL_TRUSTED_HOSTS, or "
                 "set PORTAL_PUBLIC_URL.")


class NestedTooDeeply(MalformedRequest):
    def __init__(self) -> None:
        super().__init__(N_("the JSON is nested too deeply"))


class CsrfFailed(Forbidden):
    message = N_("This form has expired or came from another site. Go back, reload the "
                 "page and send the form again.")


class MethodNotAllowed(PortalError):
    status = 405
    message = N_("This address does not support that method.")


class RequestTooLarge(PortalError):
    code, status = "too_large", 413
    message = N_("The request is too large. Send fewer files at once; each can be up to "
                 "%(limit_mb)s MB.")


class BodyTooLarge(PortalError):
    status = 413
    message = N_("The request exceeds the limit of %(limit)s kB. Send less at once.")


class TooManyValues(PortalError):
    status = 413
    message = N_("The request has more than %(limit)s values. Send fewer at once.")


class BodyTooSlow(PortalError):
    status = 408
    message = N_("The request did not arrive in time. Check your connection and send it again.")


class UnsupportedMediaType(PortalError):
    status = 415
    message = N_("Unsupported content type. Send JSON with Content-Type: application/json.")


class EncodedBody(PortalError):
    status = 415
    message = N_("The body is compressed, as its Content-Encoding says. Send it uncompressed.")


class TooManyBodies(PortalError):
    status = 429
    message = N_("%(limit)s uploads or long requests are under way already. Wait until one of them "
                 "has arrived, then send this one again.")
    retry_after_s = 5

"""The kinds of failure that any part of the portal may report, by HTTP status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from portal.errors.messages import N_, Message

Existing = TypeVar("Existing")


# A message on the line of its name keeps this list short.
# fmt: off


class PortalError(Exception):
    """An expected failure. `params` fill the placeholders in `message`, or those in a `reason`,
    which is then the one placeholder of the message.

    A subclass with its own message has its own `code`: its name in snake case, unless
    it sets another. Codes are for programs and must not change.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    is_permanent: ClassVar[bool] = False  # the same file fails again, however often it is read
    message: ClassVar[Message] = N_("Something went wrong on our side. Try again. If it keeps "
                                    "happening, send the request ID to your administrator.")
    retry_after_s: int | None = None  # seconds, for `Retry-After`
    challenge: str | None = None  # for `WWW-Authenticate` (RFC 6750)
    details: Mapping[str, Any] | None = None  # for programs, beside the message

    def __init_subclass__(cls) -> None:
        if "message" in vars(cls) and "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, reason: str | None = None, /, **params: Any) -> None:
        if reason is not None:
            given = reason if isinstance(reason, Message) else Message(reason, **params)
            params = {"reason": given}
        self.params = params
        super().__init__(self.message % self.params if self.params else self.message)

    @property
    def reason(self) -> Message:
        """Return the reason in the message. Raises KeyError if the error has none."""
        reason: Message = self.params["reason"]
        return reason


class MalformedRequest(PortalError):
    status = 400
    message = N_("Bad request: %(reason)s.")


class NotSignedIn(PortalError):
    status = 401
    message = N_("Sign in first: this needs a valid session or bearer token.")
    challenge = 'Bearer realm="portal"'


class Forbidden(PortalError):
    status = 403
    message = N_("You don't have permission to do this. Ask the owner or an administrator.")


class NotFound(PortalError):
    status = 404
    message = N_("This does not exist or was deleted, or you don't have access to it.")


def existing(value: Existing | None) -> Existing:
    """Return a value that was looked up; raise NotFound for None."""
    if value is None:
        raise NotFound
    return value


class Conflict(PortalError):
    status = 409
    message = N_("Conflict: %(reason)s.")


class TooLarge(PortalError):
    status = 413
    message = N_("“%(name)s” is larger than the limit of %(limit_mb)s MB. Split it, or ask your "
                 "administrator to raise the limit.")


class InvalidInput(PortalError):
    code, status = "invalid", 422
    message = N_("Invalid value: %(reason)s.")


class RateLimited(PortalError):
    status = 429
    message = N_("Too many requests. Wait %(seconds)s seconds and try again.")

    def __init__(self, *, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.retry_after_s = seconds


class Unavailable(PortalError):
    status = 503
    message = N_("Temporarily unavailable. Try again in a moment.")
    retry_after_s: int | None = 2


class Overloaded(Unavailable):
    message = N_("The server is overloaded. Try again in a few seconds.")


def tree(error: type[PortalError]) -> Iterator[type[PortalError]]:
    """Yield a class of errors and all that derive from it."""
    yield error
    for child in error.__subclasses__():
        yield from tree(child)

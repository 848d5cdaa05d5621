"""Errors and their messages.

A message says what happened, why, and what to do. It is an English template with ``%(name)s``
places. Each surface (page, JSON, command line) translates it and fills the places, so that the
same error reads well in the reader's language.
"""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

Existing = TypeVar("Existing")

# A message on its class's line keeps this list short.
# fmt: off


class Message(str):
    """English text that keeps its template and parameters, so that each surface can translate it.

    Logs, the command line and programs use it as the `str` that it is.
    """

    __slots__ = ("params", "template")

    template: str
    params: Mapping[str, Any]

    def __new__(cls, template: str, /, **params: Any) -> Self:
        message = super().__new__(cls, template % params if params else template)
        message.template, message.params = template, params
        return message

    def as_json(self) -> dict[str, Any]:
        """Return what `stored` reads."""
        return {"template": self.template, "params": params_as_json(self.params)}

    @classmethod
    def stored(cls, value: Any) -> Any:
        """Return the message that `as_json` wrote; any other value as it is."""
        if isinstance(value, Mapping) and value.keys() == {"template", "params"}:
            return cls(value["template"], **stored_params(value["params"]))
        return value


def params_as_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return `params` as JSON, with the template and parameters of each message in it."""
    return {name: _as_json(value) for name, value in params.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    return value if isinstance(value, str | int | float | None) else str(value)


def stored_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that `params_as_json` wrote."""
    return {name: Message.stored(value) for name, value in params.items()}


N_ = Message  # gettext's name for "translate later"


def verbatim(text: str) -> Message:
    """Return a message that is the same in every language: names of fields, or the words of
    another program."""
    return Message("%(text)s", text=text)


class PortalError(Exception):
    """An expected failure. `params` fill the places in `message`.

    A subclass with a message of its own has a `code` of its own: its name in snake case, unless
    it says otherwise. Codes are for programs and must not change.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    message: ClassVar[Message] = N_("Something went wrong on our side. Try again. If it keeps "
                                    "happening, send the request ID to your administrator.")
    retry_after_s: int | None = None  # seconds, for `Retry-After`
    challenge: str | None = None  # for `WWW-Authenticate` (RFC 6750)
    details: Mapping[str, Any] | None = None  # for programs, beside the message

    def __init_subclass__(cls) -> None:
        if "message" in vars(cls) and "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, *, reason: Message | None = None, **params: Any) -> None:
        self.params = params if reason is None else {"reason": reason, **params}
        super().__init__(self.message % self.params if self.params else self.message)


# --- 400 ---

class MalformedRequest(PortalError):
    status = 400
    message = N_("Bad request: %(reason)s.")


class UntrustedHost(MalformedRequest):
    message = N_("This portal does not answer to the name “%(host)s”. Use the address that your "
                 "administrator gave you. Administrators: add the name to PORTAL_TRUSTED_HOSTS, or "
                 "set PORTAL_PUBLIC_URL.")


class NestedTooDeeply(MalformedRequest):
    def __init__(self) -> None:
        super().__init__(reason=N_("the JSON is nested too deeply"))


class InvalidLogoutToken(MalformedRequest):
    message = N_("The logout token could not be verified, or was used before.")


class ProviderSignInExpired(MalformedRequest):
    message = N_("This sign-in took too long, was used already, or began in another browser or "
                 "tab. Start again.")


# --- 401 ---

class NotSignedIn(PortalError):
    status = 401
    message = N_("Sign in first: this needs a valid session or bearer token.")
    challenge = 'Bearer realm="portal"'


class WrongCredentials(NotSignedIn):
    message = N_("Incorrect username or password. Check both and try again.")


class SignInExpired(NotSignedIn):
    message = N_("This sign-in has expired. Start again with your name and password.")


class SecondFactorRequired(WrongCredentials):
    message = N_("The password is right, but this account uses two-step verification. Send a code "
                 "from the authenticator app, or a recovery code, as “otp”.")


class WrongSecondFactor(WrongCredentials):
    message = N_("The code is wrong, has expired or was used before. Wait for the next one and try "
                 "again.")


class TotpUnreadable(WrongCredentials):
    message = N_("Codes of the authenticator app cannot be checked any more, because the portal's "
                 "secret key has changed. Use a passkey or a recovery code, or ask an "
                 "administrator to remove your two-step verification.")


class PasskeyRefused(WrongCredentials):
    message = N_("The passkey could not be verified. Try again, or use another way to sign in.")


class InvalidToken(NotSignedIn):
    message = N_("The token is invalid, expired or revoked. Sign in again or create a new one.")
    challenge = 'Bearer realm="portal", error="invalid_token"'


class UnknownSubject(InvalidToken):
    message = N_("The token is valid, but its subject is not linked to an account here. Ask your "
                 "administrator to link it.")


# --- 403 ---

class Forbidden(PortalError):
    status = 403
    message = N_("You don't have permission to do this. Ask the owner or an administrator.")


class InsufficientScope(Forbidden):
    message = N_("This token is missing the required scope “%(scope)s”. Use a token with that "
                 "scope, or sign in.")

    def __init__(self, *, scope: str) -> None:
        super().__init__(scope=scope)
        self.challenge = f'Bearer realm="portal", error="insufficient_scope", scope="{scope}"'


class NeedsSession(Forbidden):
    message = N_("A personal token cannot change passwords, tokens or sign-ins. Sign in with your "
                 "name and password for that.")


class ReauthenticationRequired(Forbidden):
    """`is_wrong`: the password that was given to confirm is wrong."""

    message = N_("Confirm your password to go on: this changes who may do what, and you signed in "
                 "more than 15 minutes ago.")

    def __init__(self, *, is_wrong: bool = False) -> None:
        super().__init__()
        self.is_wrong = is_wrong


class SecondFactorEnrolmentRequired(Forbidden):
    message = N_("This portal requires two-step verification for your account. Set it up on the "
                 "page /account/second-factors, or at /api/account/second-factors.")


class ProviderSignInFailed(Forbidden):
    message = N_("The sign-in service's answer could not be verified, so you are not signed in. "
                 "Start again; if it keeps failing, tell your administrator.")


class ProviderRefused(Forbidden):
    message = N_("The sign-in service did not sign you in. Start again; if it keeps failing, tell "
                 "your administrator.")


class ProviderDenied(ProviderRefused):
    message = N_("You cancelled the sign-in, or the sign-in service does not let you into this "
                 "portal. Start again, or ask your administrator for access.")


class ProviderGroupsMissing(Forbidden):
    message = N_("The sign-in service did not say which groups you are in, because there are too "
                 "many. Ask your administrator to send this portal only the groups that it needs.")


class NotInAllowedGroup(Forbidden):
    message = N_("You are not in a group that may use this portal. Ask your administrator to add "
                 "you to one.")


class NotLinked(Forbidden):
    message = N_("No account here belongs to you yet. If you have one, sign in with its password "
                 "and link it on the account page; otherwise ask an administrator.")


class AccountClosed(Forbidden):
    message = N_("Your account here is closed. Ask an administrator to open it again.")


class PasswordSignInOff(Forbidden):
    message = N_("Passwords are not used here. Sign in with the sign-in service instead.")


class CsrfFailed(Forbidden):
    message = N_("This form has expired or came from another site. Reload the page and try again.")


# --- 404 and 405 ---

class NotFound(PortalError):
    status = 404
    message = N_("Not found. It may have been deleted, or you don't have access to it.")


def existing(value: Existing | None) -> Existing:
    """Return a value that was looked up; raise NotFound for None."""
    if value is None:
        raise NotFound
    return value


class NoSuchAccount(NotFound):
    message = N_(
        "There is no active account “%(name)s”. Check the name, or ask an administrator to create "
        "it."
    )


class NoSuchModel(NotFound):
    message = N_("There is no embedding model “%(name)s”. `portal models` lists the available "
                 "models; `portal reindex --model NAME` builds another.")


class MethodNotAllowed(PortalError):
    status = 405
    message = N_("This address does not support that method.")


# --- 409 ---

class Conflict(PortalError):
    status = 409
    message = N_("Conflict: %(reason)s.")


class NameTaken(Conflict):
    message = N_("The name “%(name)s” is already taken. Choose another.")


class NameLooksTaken(NameTaken):
    message = N_("The name “%(name)s” looks like one that is taken. Choose another.")


class TooManyTokens(Conflict):
    message = N_("You already have %(limit)s personal access tokens, and more are not allowed. "
                 "Revoke one that you no longer use.")


class NameNeedsLink(Conflict):
    message = N_("There already is an account “%(name)s” here. If it is yours, sign in with its "
                 "password and link it on the account page; otherwise ask an administrator.")


class LinkedElsewhere(Conflict):
    message = N_("This sign-in belongs to another account here. Unlink it there first.")


class OnlyWayIn(Conflict):
    message = N_("This is the only way into your account. Link another sign-in first, or ask an "
                 "administrator to set a password.")


class JobCancelled(Conflict):
    code = "cancelled"
    message = N_("Processing was cancelled. Retry to read the document.")


class Superseded(JobCancelled):
    message = N_("A newer version was uploaded before this one was read.")


class AlreadyElsewhere(Conflict):
    message = N_("This file already exists as “%(title)s”. To add it as a version of this "
                 "document, delete that one first.")


class UploadedAgain(Conflict):
    message = N_("This file was uploaded again as “%(title)s”. To restore this copy, delete that "
                 "document first.")


class ChunkIndexTaken(Conflict):
    message = N_("This job has a passage with chunk_index %(index)s already. Choose another, or "
                 "leave it out to add behind the last.")


class NoEmbedding(Conflict):
    message = N_("This passage has not been embedded by the current model yet. Try again when the "
                 "model is built.")


class IdempotencyConflict(Conflict):
    code = "idempotency_in_flight"
    message = N_("The same request is still in progress. Wait for it to finish, then try again.")


class IdempotencyMismatch(PortalError):
    status = 409
    message = N_("This Idempotency-Key was used for another request. Use a new one.")


# --- 408, 413 and 415: what a request or a file may be ---

class TooLarge(PortalError):
    status = 413
    message = N_("“%(name)s” is larger than the limit of %(limit_mb)s MB. Split it, or ask your "
                 "administrator to raise the limit.")


class RequestTooLarge(PortalError):
    code, status = "too_large", 413
    message = N_("The request is too large. Send fewer files at once; each can be up to "
                 "%(limit_mb)s MB.")


class BodyTooLarge(PortalError):
    status = 413
    message = N_("The request exceeds the limit of %(limit)s kB. Send less at once.")


class TooManyValues(PortalError):
    status = 413
    message = N_("The request holds more than the %(limit)s values that are taken here. Send fewer "
                 "at once.")


class BodyTooSlow(PortalError):
    status = 408
    message = N_("The request did not arrive in time. Check your connection and send it again.")


class QuotaExceeded(PortalError):
    status = 413
    message = N_("Not enough storage for “%(name)s” (%(size_mb)s MB): you are using %(used_mb)s MB "
                 "of %(limit_mb)s MB. Delete documents and empty the trash, or ask your "
                 "administrator for more storage.")

    def __init__(self, *, name: str, size_bytes: int, used_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            name=name,
            size_mb=_megabytes(size_bytes),
            used_mb=_megabytes(used_bytes),
            limit_mb=_megabytes(limit_bytes),
        )
        self.details = {
            "size_bytes": size_bytes,
            "used_bytes": used_bytes,
            "limit_bytes": limit_bytes,
        }


class UnsupportedMediaType(PortalError):
    status = 415
    message = N_("Unsupported content type. Send JSON with Content-Type: application/json.")


class EncodedBody(PortalError):
    status = 415
    message = N_("The body is compressed, as its Content-Encoding says. Send it uncompressed.")


class UnsupportedFormat(PortalError):
    status = 415
    message = N_("“%(name)s” is not supported: it looks like %(detected)s. Upload a PDF, "
                 "Word, Excel, PowerPoint, EPUB, e-mail (EML), CSV, HTML, Markdown or plain text "
                 "file.")


class TextsTooLong(TooLarge):
    message = N_("The two texts are too long to compare (%(characters)s characters; the limit is "
                 "%(limit)s).")


class TooManyLines(TextsTooLong):
    message = N_("The two texts are too long to compare (more than %(limit)s lines and sentences).")


# --- 422 ---

class InvalidInput(PortalError):
    code, status = "invalid", 422
    message = N_("Invalid value: %(reason)s.")


class PasskeysUnavailable(InvalidInput):
    message = N_("Passkeys cannot be used at this address: %(reason)s.")


class InvalidQueryVector(InvalidInput):
    message = N_("The query vector cannot be used: %(reason)s.")


class EmptyFile(InvalidInput):
    message = N_("“%(name)s” is empty: there is no text in it. Choose a file with text.")


class EncryptedPdf(InvalidInput):
    message = N_("“%(name)s” is protected by a password. Save a copy without one and upload that.")


class BrokenPdf(InvalidInput):
    message = N_("“%(name)s” is damaged and cannot be read. Open it in a PDF viewer, save a new "
                 "copy and upload that.")


class InfectedFile(InvalidInput):
    message = N_("“%(name)s” was refused: the malware scanner found something in it. Nothing was "
                 "stored. Check the computer it came from, or ask your administrator.")


class EmptyPdf(InvalidInput):
    message = N_("“%(name)s” has no pages. Open it in the program it was made with, check that its "
                 "pages show, and export it again.")


class BrokenFile(InvalidInput):
    message = N_("“%(name)s” is damaged and cannot be read. Open it in the app that created it, "
                 "save a new copy and upload that.")


class BlankPdf(InvalidInput):
    message = N_("“%(name)s” cannot be searched: all of its pages are blank. Upload a file with "
                 "text.")


class NoTextInPdf(InvalidInput):
    message = N_("“%(name)s” cannot be searched: no text on %(where)s, only pictures or drawings. "
                 "%(advice)s")


class NoTextInPicture(InvalidInput):
    message = N_("“%(name)s” cannot be searched: no text was found in the picture. %(advice)s")


class UndecodableText(InvalidInput):
    message = N_("“%(name)s” could not be read: it is no text, or its encoding is unknown. If it "
                 "is a text, save it as UTF-8 and upload that. Other files that are read: PDF, "
                 "Word, Excel, PowerPoint, EPUB, e-mail (EML), CSV, HTML and Markdown.")


class UndecodableAs(UndecodableText):
    message = N_("“%(name)s” is not valid %(encoding)s. Choose another encoding.")


class ExtractionTimedOut(InvalidInput):
    message = N_("Reading “%(name)s” took more than %(seconds)s seconds and was stopped. Split it "
                 "into smaller files.")


class ExtractionTooLarge(InvalidInput):
    message = N_("“%(name)s” holds more %(what)s than the limit of %(limit)s. Split it into "
                 "smaller files.")


class UnpacksToTooMuch(ExtractionTooLarge):
    message = N_("Reading “%(name)s” takes more than the limit of %(limit_mb)s MB of memory: it "
                 "unpacks to far more than its size. Split it into smaller files, or save it "
                 "without its pictures and drawings.")


class TooMuchInOne(ExtractionTooLarge):
    message = N_("“%(name)s” has more than %(limit)s %(what)s, which no document that is written "
                 "for readers has. Save the text you need as a new file and upload that.")


class KilledWorker(InvalidInput):
    message = N_("Reading “%(name)s” crashed %(times)s times in a row. Split it into smaller "
                 "files, or save a new copy and upload that.")


class PagesUnavailable(InvalidInput):
    message = N_("The pages of this file cannot be shown. Its text can be read.")


class UnreadableFile(InvalidInput):
    message = N_("The file cannot be read from the disk: %(reason)s.")


class SourceUnavailable(InvalidInput):
    message = N_("The source cannot be read: %(reason)s. Nothing was removed.")


class PageUnavailable(InvalidInput):
    message = N_("The page cannot be read: %(reason)s.")


class PageGone(PageUnavailable):
    message = N_("The page is gone for good, says its server.")


class WeakPassword(InvalidInput):
    message = N_("The password is too short. Use at least %(min)s characters.")


class BlankPassword(WeakPassword):
    message = N_("The password is blank. Use a few words, or letters, digits and symbols.")


class CommonPassword(WeakPassword):
    message = N_("The password is easy to guess: it is a common one, or close to one. Use a few "
                 "unrelated words.")


class PasswordLikeName(WeakPassword):
    message = N_("The password is too close to your name or the portal's name. Use a few unrelated "
                 "words.")


class BreachedPassword(WeakPassword):
    message = N_("The password has appeared in a data breach. Choose another one, and change it "
                 "wherever else you use it.")


# --- 429 ---

class RateLimited(PortalError):
    status = 429
    message = N_("Too many requests. Wait %(seconds)s seconds and try again.")

    def __init__(self, *, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.retry_after_s = seconds


class TooManyBodies(PortalError):
    status = 429
    message = N_("%(limit)s uploads or long requests are under way already. Wait until one of them "
                 "has arrived, then send this one again.")
    retry_after_s = 5


class SecondFactorLocked(RateLimited):
    message = N_("Too many wrong codes. Wait %(seconds)s seconds, or use another way to verify "
                 "that it is you.")


class TooManyOwnAnswers(PortalError):
    status = 429
    message = N_("You already have %(max)s answers in progress. Wait for one to finish, or stop "
                 "it.")
    retry_after_s = 2


# --- 502, 503 and 507 ---

class InvalidEmbedding(PortalError):
    status = 502
    message = N_("The embedding model gave an unusable vector: %(reason)s. Check the model's "
                 "settings.")


class Unavailable(PortalError):
    status = 503
    message = N_("Temporarily unavailable. Try again in a moment.")
    retry_after_s: int | None = 2


class BreachedListUnavailable(Unavailable):
    message = N_("The list of breached passwords cannot be read, so the new password was not "
                 "saved. Tell your administrator.")
    retry_after_s = None


class Overloaded(Unavailable):
    message = N_("The server is overloaded. Try again in a few seconds.")


class BatchTimedOut(Unavailable):
    message = N_("The batch ran out of time before this query. Send it again with fewer queries at "
                 "once.")


class EmbedderUnavailable(Unavailable):
    message = N_("The embedding model cannot be used: %(reason)s.")


class RerankerUnavailable(Unavailable):
    message = N_("The re-ranking model cannot be used: %(reason)s.")


class ChatUnavailable(Unavailable):
    message = N_("The chat model did not answer: %(reason)s.")


class TooManyAnswers(Unavailable):
    message = N_("The server is writing as many answers as it can. Try again in a moment.")


class VectorStoreDisabled(Unavailable):
    message = N_("Vector search is switched off on this server. Set "
                 "PORTAL_VECTOR_STORE_ENABLED=true to use it.")
    retry_after_s = None


class DatabaseUnavailable(Unavailable):
    message = N_("The database is not responding. Try again in a moment.")


class WritingUnavailable(DatabaseUnavailable):
    message = N_("At the moment the portal can only be read. Nothing was saved. Try again in a "
                 "minute.")
    retry_after_s = 10


class ScannerUnavailable(Unavailable):
    message = N_("The file could not be scanned for malware, so nothing was stored. Try again in a "
                 "moment; if it stays so, tell your administrator.")
    retry_after_s = 30


class IssuerUnavailable(Unavailable):
    message = N_("Tokens of the sign-in service cannot be checked, because its keys cannot be "
                 "read. Try again in a moment.")


class ProviderUnavailable(Unavailable):
    message = N_("The sign-in service cannot be reached right now. Try again in a moment.")


class StorageFull(PortalError):
    status = 507
    message = N_("The server's disk is full. Nothing was saved. Tell your administrator.")


# --- Command line ---

class CommandRefused(PortalError):
    """Shown on the command line only, and so in English only."""

    message = Message("%(reason)s")

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason=verbatim(reason))


class InvalidSetting(CommandRefused):
    message = Message("%(reason)s.")

    def __init__(self, *, name: str, got: str, takes: str) -> None:
        super().__init__(reason=f"{name} is {got}, but takes {takes}")


class ServerSetup(CommandRefused):
    """The machine or its database cannot serve."""

    code = "server_setup"


class BackupRefused(CommandRefused):
    """A backup cannot be written or restored."""

    code = "backup_refused"


def is_disk_full(error: BaseException) -> bool:
    """Return whether a file could not be written because the disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def _megabytes(size_bytes: int) -> str:
    """Return the size in MB, rounded up to a tenth."""
    return f"{math.ceil(10 * size_bytes / 1024**2) / 10:.1f}".removesuffix(".0")


def tree(error: type[PortalError]) -> Iterator[type[PortalError]]:
    """Yield a class of errors and all that derive from it."""
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


MESSAGES = {error.code: error.message for error in tree(PortalError)}
"""The template of each code, for stored failures."""

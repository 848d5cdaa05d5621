"""Everything that can go wrong and that a person is told about.

::

    PortalError
    ├── MalformedRequest 400: UntrustedHost, ProviderSignInExpired, InvalidLogoutToken
    ├── NotSignedIn 401: WrongCredentials (SecondFactorRequired, WrongSecondFactor, TotpUnreadable,
    │     PasskeyRefused), InvalidToken (UnknownSubject)
    ├── Forbidden 403: InsufficientScope, NeedsSession, SecondFactorEnrolmentRequired,
    │     CsrfFailed, ProviderSignInFailed, ProviderRefused (ProviderDenied),
    │     ProviderGroupsMissing, NotInAllowedGroup, NotLinked, AccountClosed, PasswordSignInOff
    ├── NotFound 404: NoSuchAccount, NoSuchModel
    ├── MethodNotAllowed 405
    ├── Conflict 409: NameTaken (NameLooksTaken), TooManyTokens, JobCancelled (Superseded),
    │     AlreadyElsewhere, UploadedAgain, ChunkIndexTaken, NoEmbedding, IdempotencyConflict,
    │     NameNeedsLink, LinkedElsewhere, OnlyWayIn
    ├── TooLarge 413: TextsTooLong (TooManyLines)
    ├── RequestTooLarge, BodyTooLarge, QuotaExceeded 413
    ├── UnsupportedMediaType, UnsupportedFormat 415
    ├── InvalidInput 422: PasskeysUnavailable, InvalidQueryVector, EmptyFile, EncryptedPdf,
    │     BrokenPdf, BrokenFile, NoTextInPdf, UndecodableText (UndecodableAs),
    │     ExtractionTimedOut, ExtractionTooLarge, KilledWorker, UnreadableFile, WeakPassword
    │     (BlankPassword, CommonPassword, PasswordLikeName, BreachedPassword), InvalidSetting,
    │     IdempotencyMismatch
    ├── RateLimited (SecondFactorLocked), TooManyOwnAnswers 429
    ├── InvalidEmbedding 502
    ├── Unavailable 503: Overloaded, BreachedListUnavailable, BatchTimedOut, EmbedderUnavailable,
    │     RerankerUnavailable, ChatUnavailable, TooManyAnswers, VectorStoreDisabled,
    │     DatabaseUnavailable, IssuerUnavailable, ProviderUnavailable
    ├── StorageFull 507
    └── ServerSetup, BackupRefused (command line only)

A message says what happened, why, and what to do. It is an English template with ``%(name)s``
places; each surface (page, JSON, command line) translates the template and then fills it in,
so that the same error reads naturally in the reader's language.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MEGABYTE = 1024 * 1024


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
    """Return `params` with each message in it as JSON."""
    return {k: v.as_json() if isinstance(v, Message) else v for k, v in params.items()}


def stored_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that `params_as_json` wrote."""
    return {name: Message.stored(value) for name, value in params.items()}


N_ = Message  # gettext's name for "translate later"


def verbatim(text: str) -> Message:
    """Return a message that is the same in every language: names of fields, or the words of
    another program."""
    return Message("%(text)s", text=text)


class PortalError(Exception):
    """An expected failure. `params` fill the places in `message`."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    message: ClassVar[str] = N_(
        "Something went wrong on our side. Try again. If it "
        "keeps happening, send the request ID to your "
        "administrator."
    )

    retry_after_s: int | None = None
    """Seconds after which trying again may help, as `Retry-After` says; None: nothing is known."""

    challenge: str | None = None
    """What `WWW-Authenticate` says (RFC 6750); None: nothing."""

    details: Mapping[str, Any] | None = None
    """What a program may want of it beside the words; None: nothing."""

    def __init__(self, *, reason: Message | None = None, **params: Any) -> None:
        self.params = params if reason is None else {"reason": reason, **params}
        params = self.params
        super().__init__(self.message % params if params else self.message)


class MalformedRequest(PortalError):
    code, status = "malformed_request", 400
    message = N_("Bad request: %(reason)s.")


class UntrustedHost(MalformedRequest):
    code = "untrusted_host"
    message = N_("This portal does not answer to the name “%(host)s”. Use the address that your "
                 "administrator gave you. Administrators: add the name to PORTAL_TRUSTED_HOSTS, or "
                 "set PORTAL_PUBLIC_URL.")  # fmt: skip


class NestedTooDeeply(MalformedRequest):
    def __init__(self) -> None:
        super().__init__(reason=N_("the JSON is nested too deeply"))


class NotSignedIn(PortalError):
    code, status = "not_signed_in", 401
    message = N_("Sign in first: this needs a valid session or bearer token.")
    challenge = 'Bearer realm="portal"'


class WrongCredentials(NotSignedIn):
    code = "wrong_credentials"
    message = N_("Incorrect username or password. Check both and try again.")


class SignInExpired(NotSignedIn):
    code = "sign_in_expired"
    message = N_("This sign-in has expired. Start again with your name and password.")


class SecondFactorRequired(WrongCredentials):
    code = "second_factor_required"
    message = N_("The password is right, but this account uses two-step verification. Send a code "
                 "from the authenticator app, or a recovery code, as “otp”.")  # fmt: skip


class WrongSecondFactor(WrongCredentials):
    code = "wrong_second_factor"
    message = N_("The code is wrong, has expired or was used before. Wait for the next one and "
                 "try again.")  # fmt: skip


class TotpUnreadable(WrongCredentials):
    code = "totp_unreadable"
    message = N_("Codes of the authenticator app cannot be checked any more, because the portal's "
                 "secret key has changed. Use a passkey or a recovery code, or ask an "
                 "administrator to remove your two-step verification.")  # fmt: skip


class PasskeyRefused(WrongCredentials):
    code = "passkey_refused"
    message = N_("The passkey could not be verified. Try again, or use another way to "
                 "sign in.")  # fmt: skip


class InvalidToken(NotSignedIn):
    code = "invalid_token"
    message = N_("The token is invalid, expired or revoked. Sign in again or create a new one.")
    challenge = 'Bearer realm="portal", error="invalid_token"'


class UnknownSubject(InvalidToken):
    code = "unknown_subject"
    message = N_(
        "The token is valid, but its subject is not linked to an account here. "
        "Ask your administrator to link it."
    )


class Forbidden(PortalError):
    code, status = "forbidden", 403
    message = N_("You don't have permission to do this. Ask the owner or an administrator.")


class InsufficientScope(Forbidden):
    code = "insufficient_scope"
    message = N_(
        "This token is missing the required scope “%(scope)s”. Use a token with "
        "that scope, or sign in."
    )

    def __init__(self, *, scope: str) -> None:
        super().__init__(scope=scope)
        self.challenge = f'Bearer realm="portal", error="insufficient_scope", scope="{scope}"'


class NeedsSession(Forbidden):
    code = "needs_session"
    message = N_(
        "A personal token cannot change passwords, tokens or sign-ins. "
        "Sign in with your name and password for that."
    )


class ReauthenticationRequired(Forbidden):
    """`is_wrong`: the password that was given to confirm is wrong."""

    code = "reauthentication_required"
    message = N_("Confirm your password to go on: this changes who may do what, and you signed in "
                 "more than 15 minutes ago.")  # fmt: skip

    def __init__(self, *, is_wrong: bool = False) -> None:
        super().__init__()
        self.is_wrong = is_wrong


class SecondFactorEnrolmentRequired(Forbidden):
    code = "second_factor_enrolment_required"
    message = N_("This portal requires two-step verification for your account. Set it up on the "
                 "page /account/second-factors, or at /api/account/second-factors.")  # fmt: skip


class ProviderSignInFailed(Forbidden):
    code = "provider_sign_in_failed"
    message = N_("The sign-in service's answer could not be verified, so you are not signed in. "
                 "Start again; if it keeps failing, tell your administrator.")  # fmt: skip


class ProviderRefused(Forbidden):
    code = "provider_refused"
    message = N_("The sign-in service did not sign you in. Start again; if it keeps failing, tell "
                 "your administrator.")  # fmt: skip


class ProviderDenied(ProviderRefused):
    code = "provider_denied"
    message = N_("You cancelled the sign-in, or the sign-in service does not let you into this "
                 "portal. Start again, or ask your administrator for access.")  # fmt: skip


class InvalidLogoutToken(MalformedRequest):
    code = "invalid_logout_token"
    message = N_("The logout token could not be verified, or was used before.")


class ProviderSignInExpired(MalformedRequest):
    code = "provider_sign_in_expired"
    message = N_("This sign-in took too long, was used already, or began in another browser or "
                 "tab. Start again.")  # fmt: skip


class ProviderGroupsMissing(Forbidden):
    code = "provider_groups_missing"
    message = N_("The sign-in service did not say which groups you are in, because there are too "
                 "many. Ask your administrator to send this portal only the groups that it "
                 "needs.")  # fmt: skip


class NotInAllowedGroup(Forbidden):
    code = "not_in_allowed_group"
    message = N_("You are not in a group that may use this portal. Ask your administrator to add "
                 "you to one.")  # fmt: skip


class NotLinked(Forbidden):
    code = "not_linked"
    message = N_("No account here belongs to you yet. If you have one, sign in with its password "
                 "and link it on the account page; otherwise ask an administrator.")  # fmt: skip


class AccountClosed(Forbidden):
    code = "account_closed"
    message = N_("Your account here is closed. Ask an administrator to open it again.")


class PasswordSignInOff(Forbidden):
    code = "password_sign_in_off"
    message = N_("Passwords are not used here. Sign in with the sign-in service instead.")


class CsrfFailed(Forbidden):
    code = "csrf_failed"
    message = N_("This form has expired or came from another site. Reload the page and try again.")


class NotFound(PortalError):
    code, status = "not_found", 404
    message = N_("Not found. It may have been deleted, or you don't have access to it.")


class NoSuchAccount(NotFound):
    code = "no_such_account"
    message = N_("There is no active account “%(name)s”. Create it first: portal user create NAME.")


class NoSuchModel(NotFound):
    code = "no_such_model"
    message = N_(
        "There is no embedding model “%(name)s”. `portal models` lists the "
        "available models; `portal reindex --model NAME` builds another."
    )


class MethodNotAllowed(PortalError):
    code, status = "method_not_allowed", 405
    message = N_("This address does not support that method.")


class Conflict(PortalError):
    code, status = "conflict", 409
    message = N_("Conflict: %(reason)s.")


class NameTaken(Conflict):
    code = "name_taken"
    message = N_("The name “%(name)s” is already taken. Choose another.")


class NameLooksTaken(NameTaken):
    code = "name_looks_taken"
    message = N_("The name “%(name)s” looks like one that is taken. Choose another.")


class TooManyTokens(Conflict):
    code = "too_many_tokens"
    message = N_("You already have %(limit)s personal access tokens, and more are not allowed. "
                 "Revoke one that you no longer use.")  # fmt: skip


class NameNeedsLink(Conflict):
    code = "name_needs_link"
    message = N_("There already is an account “%(name)s” here. If it is yours, sign in with its "
                 "password and link it on the account page; otherwise ask an "
                 "administrator.")  # fmt: skip


class LinkedElsewhere(Conflict):
    code = "linked_elsewhere"
    message = N_("This sign-in belongs to another account here. Unlink it there first.")


class OnlyWayIn(Conflict):
    code = "only_way_in"
    message = N_("This is the only way into your account. Link another sign-in first, or ask an "
                 "administrator to set a password.")  # fmt: skip


class TooLarge(PortalError):
    code, status = "too_large", 413
    message = N_(
        "“%(name)s” is larger than the limit of %(limit_mb)s MB. Split it, or ask your "
        "administrator to raise the limit."
    )


class RequestTooLarge(PortalError):
    code, status = "too_large", 413
    message = N_(
        "The request is too large. Send fewer files at once; each can be up to %(limit_mb)s MB."
    )


class BodyTooLarge(PortalError):
    code, status = "body_too_large", 413
    message = N_("The request exceeds the limit of %(limit)s kB. Send less at once.")


class TooManyValues(PortalError):
    code, status = "too_many_values", 413
    message = N_("The request holds more than the %(limit)s values that are taken here. "
                 "Send fewer at once.")  # fmt: skip


class BodyTooSlow(PortalError):
    code, status = "body_too_slow", 408
    message = N_("The request did not arrive in time. Check your connection and send it again.")


class QuotaExceeded(PortalError):
    code, status = "quota_exceeded", 413
    message = N_(
        "Not enough storage for “%(name)s” (%(size_mb)s MB): you are using "
        "%(used_mb)s MB of %(limit_mb)s MB. Delete documents and empty the "
        "trash, or ask your administrator for more storage."
    )

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
    code, status = "unsupported_media_type", 415
    message = N_("Unsupported content type. Send JSON with Content-Type: application/json.")


class EncodedBody(PortalError):
    code, status = "encoded_body", 415
    message = N_("The body is compressed, as its Content-Encoding says. Send it uncompressed.")


class UnsupportedFormat(PortalError):
    code, status = "unsupported_format", 415
    message = N_(
        "“%(name)s” is not supported: it looks like %(detected)s. Upload a PDF, "
        "Word (DOCX), HTML, Markdown or plain text file."
    )


class InvalidInput(PortalError):
    code, status = "invalid", 422
    message = N_("Invalid value: %(reason)s.")


class PasskeysUnavailable(InvalidInput):
    code = "passkeys_unavailable"
    message = N_("Passkeys cannot be used at this address: %(reason)s.")


class InvalidQueryVector(InvalidInput):
    code = "invalid_query_vector"
    message = N_("The query vector cannot be used: %(reason)s.")


class EmptyFile(InvalidInput):
    code = "empty_file"
    message = N_("“%(name)s” is empty: there is no text in it. Choose a file with text.")


class EncryptedPdf(InvalidInput):
    code = "encrypted_pdf"
    message = N_("“%(name)s” is protected by a password. Save a copy without one and upload that.")


class BrokenPdf(InvalidInput):
    code = "broken_pdf"
    message = N_(
        "“%(name)s” is damaged and cannot be read. Open it in a PDF viewer, "
        "save a new copy and upload that."
    )


class InfectedFile(InvalidInput):
    code = "infected_file"
    message = N_("“%(name)s” was refused: the malware scanner found something in it. Nothing was "
                 "stored. Check the computer it came from, or ask your "
                 "administrator.")  # fmt: skip


class EmptyPdf(InvalidInput):
    code = "empty_pdf"
    message = N_("“%(name)s” has no pages. Open it in the program it was made with, check that "
                 "its pages show, and export it again.")  # fmt: skip


class BrokenFile(InvalidInput):
    code = "broken_file"
    message = N_(
        "“%(name)s” is damaged and cannot be read. Open it in the app that "
        "created it, save a new copy and upload that."
    )


class NoTextInPdf(InvalidInput):
    code = "no_text_in_pdf"
    message = N_(
        "“%(name)s” cannot be searched: no text on %(where)s, only pictures (a scan?). %(advice)s"
    )


class UndecodableText(InvalidInput):
    code = "undecodable_text"
    message = N_(
        "The encoding of “%(name)s” could not be recognised. Save it as UTF-8 and upload that."
    )


class UndecodableAs(UndecodableText):
    code = "undecodable_as"
    message = N_("“%(name)s” is not valid %(encoding)s. Choose another encoding.")


class ExtractionTimedOut(InvalidInput):
    code = "extraction_timed_out"
    message = N_(
        "Reading “%(name)s” took more than %(seconds)s seconds and was stopped. "
        "Split it into smaller files."
    )


class ExtractionTooLarge(InvalidInput):
    code = "extraction_too_large"
    message = N_(
        "“%(name)s” holds more %(what)s than the limit of %(limit)s. Split it into smaller files."
    )


class UnpacksToTooMuch(ExtractionTooLarge):
    code = "unpacks_to_too_much"
    message = N_("Reading “%(name)s” takes more than the limit of %(limit_mb)s MB of memory: it "
                 "unpacks to far more than its size. Split it into smaller files, or save it "
                 "without its pictures and drawings.")  # fmt: skip


class TooMuchInOne(ExtractionTooLarge):
    code = "too_much_in_one"
    message = N_("“%(name)s” has more than %(limit)s %(what)s, which no document that is written "
                 "for readers has. Save the text you need as a new file and upload "
                 "that.")  # fmt: skip


class KilledWorker(InvalidInput):
    code = "killed_worker"
    message = N_(
        "Reading “%(name)s” crashed %(times)s times in a row. Split it into "
        "smaller files, or save a new copy and upload that."
    )


class UnreadableFile(InvalidInput):
    code = "unreadable_file"
    message = N_("The file cannot be read from the disk: %(reason)s.")


class WeakPassword(InvalidInput):
    code = "weak_password"
    message = N_("The password is too short. Use at least %(least)s characters.")


class BlankPassword(WeakPassword):
    code = "blank_password"
    message = N_("The password is blank. Use a few words, or letters, digits and symbols.")


class CommonPassword(WeakPassword):
    code = "common_password"
    message = N_("The password is easy to guess: it is a common one, or close to one. "
                 "Use a few unrelated words.")  # fmt: skip


class PasswordLikeName(WeakPassword):
    code = "password_like_name"
    message = N_("The password is too close to your name or the portal's name. "
                 "Use a few unrelated words.")  # fmt: skip


class BreachedPassword(WeakPassword):
    code = "breached_password"
    message = N_("The password has appeared in a data breach. Choose another one, and change it "
                 "wherever else you use it.")  # fmt: skip


class InvalidSetting(InvalidInput):
    code = "invalid_setting"
    message = N_("%(name)s is %(got)s, but takes %(takes)s.")


class JobCancelled(Conflict):
    code = "cancelled"
    message = N_("Processing was cancelled. Retry to read the document.")


class Superseded(JobCancelled):
    code = "superseded"
    message = N_("A newer version was uploaded before this one was read.")


class AlreadyElsewhere(Conflict):
    code = "already_elsewhere"
    message = N_(
        "This file already exists as “%(title)s”. To add it as a version of "
        "this document, delete that one first."
    )


class UploadedAgain(Conflict):
    code = "uploaded_again"
    message = N_(
        "This file was uploaded again as “%(title)s”. To restore this copy, "
        "delete that document first."
    )


class TextsTooLong(TooLarge):
    code = "texts_too_long"
    message = N_(
        "The two texts are too long to compare (%(characters)s characters; the limit is %(limit)s)."
    )


class TooManyLines(TextsTooLong):
    code = "too_many_lines"
    message = N_("The two texts are too long to compare (more than %(limit)s lines and sentences).")


class ChunkIndexTaken(Conflict):
    code = "chunk_index_taken"
    message = N_(
        "This job has a passage with chunk_index %(index)s already. Choose another, or "
        "leave it out to add behind the last."
    )


class NoEmbedding(Conflict):
    code = "no_embedding"
    message = N_(
        "This passage has not been embedded by the current model yet. Try again "
        "when the model is built."
    )


class IdempotencyConflict(Conflict):
    code = "idempotency_in_flight"
    message = N_("The same request is still in progress. Wait for it to finish, then try again.")


class IdempotencyMismatch(PortalError):
    status = 409
    code = "idempotency_mismatch"
    message = N_("This Idempotency-Key was used for another request. Use a new one.")


class RateLimited(PortalError):
    code, status = "rate_limited", 429
    message = N_("Too many requests. Wait %(seconds)s seconds and try again.")

    def __init__(self, *, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.retry_after_s = seconds


class TooManyBodies(PortalError):
    code, status = "too_many_bodies", 429
    message = N_("%(limit)s uploads or long requests are under way already. Wait until one of them "
                 "has arrived, then send this one again.")  # fmt: skip
    retry_after_s = 5


class SecondFactorLocked(RateLimited):
    code = "second_factor_locked"
    message = N_("Too many wrong codes. Wait %(seconds)s seconds, or use another way to verify "
                 "that it is you.")  # fmt: skip


class InvalidEmbedding(PortalError):
    code, status = "invalid_embedding", 502
    message = N_(
        "The embedding model gave an unusable vector: %(reason)s. Check the model's settings."
    )


class Unavailable(PortalError):
    code, status = "unavailable", 503
    message = N_("Temporarily unavailable. Try again in a moment.")
    retry_after_s: int | None = 2


class BreachedListUnavailable(Unavailable):
    code = "breached_list_unavailable"
    message = N_("The list of breached passwords cannot be read, so the new password was not "
                 "saved. Tell your administrator.")  # fmt: skip
    retry_after_s = None


class Overloaded(Unavailable):
    code = "overloaded"
    message = N_("The server is overloaded. Try again in a few seconds.")


class BatchTimedOut(Unavailable):
    code = "batch_timed_out"
    message = N_(
        "The batch ran out of time before this query. Send it again with fewer queries at once."
    )


class EmbedderUnavailable(Unavailable):
    code = "embedder_unavailable"
    message = N_("The embedding model cannot be used: %(reason)s.")


class RerankerUnavailable(Unavailable):
    code = "reranker_unavailable"
    message = N_("The re-ranking model cannot be used: %(reason)s.")


class ChatUnavailable(Unavailable):
    code = "chat_unavailable"
    message = N_("The chat model did not answer: %(reason)s.")


class TooManyAnswers(Unavailable):
    code = "too_many_answers"
    message = N_("The server is writing as many answers as it can. Try again in a moment.")


class TooManyOwnAnswers(PortalError):
    code, status = "too_many_own_answers", 429
    message = N_(
        "You already have %(most)s answers in progress. Wait for one to finish, or stop it."
    )
    retry_after_s = 2


class VectorStoreDisabled(Unavailable):
    code = "vector_store_disabled"
    message = N_(
        "Vector search is switched off on this server. "
        "Set PORTAL_VECTOR_STORE_ENABLED=true to use it."
    )
    retry_after_s = None


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    message = N_("The database is not responding. Try again in a moment.")


class ScannerUnavailable(Unavailable):
    code = "scanner_unavailable"
    message = N_("The file could not be scanned for malware, so nothing was stored. Try again in a "
                 "moment; if it stays so, tell your administrator.")  # fmt: skip
    retry_after_s = 30


class IssuerUnavailable(Unavailable):
    code = "issuer_unavailable"
    message = N_(
        "Tokens of the sign-in service cannot be checked, because its keys cannot be "
        "read. Try again in a moment."
    )


class ProviderUnavailable(Unavailable):
    code = "provider_unavailable"
    message = N_("The sign-in service cannot be reached right now. Try again in a moment.")


class StorageFull(PortalError):
    code, status = "storage_full", 507
    message = N_("The server's disk is full. Nothing was saved. Tell your administrator.")


def _megabytes(size_bytes: int) -> str:
    """Rounded up: what there is little of is not nothing."""
    return f"{math.ceil(10 * size_bytes / _MEGABYTE) / 10:.1f}".removesuffix(".0")


def is_disk_full(error: BaseException) -> bool:
    """Whether a file could not be written for want of room, or of a share of it."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


class CommandRefused(PortalError):
    """Shown on the command line only, and so in English only."""

    code = "command_refused"
    message = "%(reason)s"

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason=verbatim(reason))


class ServerSetup(CommandRefused):
    """The machine or its database cannot serve."""

    code = "server_setup"


class BackupRefused(CommandRefused):
    """A backup cannot be written or restored."""

    code = "backup_refused"


def tree(error: type[PortalError]) -> Iterator[type[PortalError]]:
    """Yield a class of errors and all that derive from it."""
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


MESSAGES = {error.code: error.message for error in tree(PortalError)}
"""The template behind each code: what a stored failure is told with."""

"""Everything that can go wrong and that a person is told about.

::

    PortalError
    ├── MalformedRequest 400
    ├── NotSignedIn 401: WrongCredentials, InvalidToken (UnknownSubject)
    ├── Forbidden 403: InsufficientScope, NeedsSession, CsrfFailed
    ├── NotFound 404: NoSuchAccount, NoSuchModel
    ├── MethodNotAllowed 405
    ├── Conflict 409: NameTaken, JobCancelled (Superseded), AlreadyElsewhere, UploadedAgain,
    │     ChunkIndexTaken, NoEmbedding, IdempotencyConflict
    ├── TooLarge 413: TextsTooLong (TooManyLines)
    ├── RequestTooLarge, BodyTooLarge, QuotaExceeded 413
    ├── UnsupportedMediaType, UnsupportedFormat 415
    ├── InvalidInput 422: InvalidQueryVector, EmptyFile, EncryptedPdf, BrokenPdf, BrokenFile,
    │     NoTextInPdf, UndecodableText (UndecodableAs), ExtractionTimedOut, ExtractionTooLarge,
    │     KilledWorker, UnreadableFile, WeakPassword, InvalidSetting, IdempotencyMismatch
    ├── RateLimited, TooManyOwnAnswers 429
    ├── InvalidEmbedding 502
    ├── Unavailable 503: Overloaded, BatchTimedOut, EmbedderUnavailable, RerankerUnavailable,
    │     ChatUnavailable, TooManyAnswers, VectorStoreDisabled, DatabaseUnavailable,
    │     IssuerUnavailable
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
from typing import Any, ClassVar

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MEGABYTE = 1024 * 1024


def N_(message: str) -> str:  # noqa: N802 - gettext's own name for "translate later"
    """Mark a message for translation without translating it yet."""
    return message


class PortalError(Exception):
    """An expected failure. `params` fill the places in `message`."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    message: ClassVar[str] = N_("Something went wrong on our side. Try again; if it stays, "
                                "give your administrator the request id.")  # fmt: skip

    retry_after_s: int | None = None
    """Seconds after which trying again may help, as `Retry-After` says; None: nothing is known."""

    challenge: str | None = None
    """What `WWW-Authenticate` says (RFC 6750); None: nothing."""

    details: Mapping[str, Any] | None = None
    """What a program may want of it beside the words; None: nothing."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        super().__init__(self.message % params if params else self.message)


class MalformedRequest(PortalError):
    code, status = "malformed_request", 400
    message = N_("The request could not be read: %(reason)s.")


class NotSignedIn(PortalError):
    code, status = "not_signed_in", 401
    message = N_("Sign in first: this needs a valid session or bearer token.")
    challenge = 'Bearer realm="portal"'


class WrongCredentials(NotSignedIn):
    code = "wrong_credentials"
    message = N_("The name or the password is wrong. Check both and try again.")


class SignInExpired(NotSignedIn):
    code = "sign_in_expired"
    message = N_("This sign-in has expired. Start again with your name and password.")


class InvalidToken(NotSignedIn):
    code = "invalid_token"
    message = N_("The token is expired, revoked or not ours. Sign in again or get a new one.")
    challenge = 'Bearer realm="portal", error="invalid_token"'


class UnknownSubject(InvalidToken):
    code = "unknown_subject"
    message = N_("The token is good, but nobody here is linked to whom it speaks for. "
                 "Ask your administrator to link the account.")  # fmt: skip


class Forbidden(PortalError):
    code, status = "forbidden", 403
    message = N_("You may not do this. Ask the owner or an administrator.")


class InsufficientScope(Forbidden):
    code = "insufficient_scope"
    message = N_("This token lacks the scope “%(scope)s”, which this needs. "
                 "Use a token that has it, or sign in.")  # fmt: skip

    def __init__(self, *, scope: str) -> None:
        super().__init__(scope=scope)
        self.challenge = f'Bearer realm="portal", error="insufficient_scope", scope="{scope}"'


class NeedsSession(Forbidden):
    code = "needs_session"
    message = N_("A token cannot make or revoke other tokens. Sign in with name and password "
                 "for that.")  # fmt: skip


class CsrfFailed(Forbidden):
    code = "csrf_failed"
    message = N_("This form has expired or came from another site. Reload the page and try again.")


class NotFound(PortalError):
    code, status = "not_found", 404
    message = N_("There is nothing here, or nothing that you may see. "
                 "It may have been deleted.")  # fmt: skip


class NoSuchAccount(NotFound):
    code = "no_such_account"
    message = N_("There is no open account “%(name)s”. Make it first: portal user create NAME.")


class NoSuchModel(NotFound):
    code = "no_such_model"
    message = N_("There is no embedding model “%(name)s”. The command `portal models` lists those "
                 "that are there; `portal reindex --model NAME` builds another.")  # fmt: skip


class MethodNotAllowed(PortalError):
    code, status = "method_not_allowed", 405
    message = N_("This address exists, but not for what was just tried.")


class Conflict(PortalError):
    code, status = "conflict", 409
    message = N_("This clashes with what is there: %(reason)s.")


class NameTaken(Conflict):
    code = "name_taken"
    message = N_("The name “%(name)s” is taken. Choose another.")


class TooLarge(PortalError):
    code, status = "too_large", 413
    message = N_("“%(name)s” is larger than the limit of %(limit_mb)s MB. Split it, or ask your "
                 "administrator to raise the limit.")  # fmt: skip


class RequestTooLarge(PortalError):
    code, status = "too_large", 413
    message = N_(
        "All of it together is too much for one request. Send fewer files at once; "
        "each may have up to %(limit_mb)s MB."
    )


class BodyTooLarge(PortalError):
    code, status = "body_too_large", 413
    message = N_("The request is longer than the %(limit)s kB that are taken here. "
                 "Send less at once.")  # fmt: skip


class QuotaExceeded(PortalError):
    code, status = "quota_exceeded", 413
    message = N_("“%(name)s” has %(size_mb)s MB and does not fit: of the %(limit_mb)s MB that a "
                 "person may keep here, %(used_mb)s MB are taken. Delete what is not needed and "
                 "empty the trash, which counts too, or ask your administrator for more "
                 "room.")  # fmt: skip

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
    message = N_("The body is of a kind that this address does not take. Send JSON.")


class UnsupportedFormat(PortalError):
    code, status = "unsupported_format", 415
    message = N_("“%(name)s” cannot be taken: it looks like %(detected)s. "
                 "Upload a PDF, a Word document (DOCX), a web page (HTML), Markdown or a text "
                 "file.")  # fmt: skip


class InvalidInput(PortalError):
    code, status = "invalid", 422
    message = N_("A value is not right: %(reason)s.")


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
    message = N_("“%(name)s” is damaged and cannot be read. Open it in a PDF program, save it "
                 "anew and upload that.")  # fmt: skip


class BrokenFile(InvalidInput):
    code = "broken_file"
    message = N_("“%(name)s” is damaged and cannot be read. Open it in the program it was made "
                 "with, save it anew and upload that.")  # fmt: skip


class NoTextInPdf(InvalidInput):
    code = "no_text_in_pdf"
    message = N_("“%(name)s” cannot be searched: no text on %(where)s, only pictures (a scan?). "
                 "%(advice)s")  # fmt: skip


class UndecodableText(InvalidInput):
    code = "undecodable_text"
    message = N_("The encoding of “%(name)s” could not be recognised. Save it as UTF-8 and "
                 "upload that.")  # fmt: skip


class UndecodableAs(UndecodableText):
    code = "undecodable_as"
    message = N_("“%(name)s” is not written in %(encoding)s: some of its bytes are no characters "
                 "there. Choose another encoding.")  # fmt: skip


class ExtractionTimedOut(InvalidInput):
    code = "extraction_timed_out"
    message = N_("Reading “%(name)s” took more than %(seconds)s seconds and was stopped. "
                 "Split it into smaller files.")  # fmt: skip


class ExtractionTooLarge(InvalidInput):
    code = "extraction_too_large"
    message = N_("“%(name)s” holds more %(what)s than the limit of %(limit)s. "
                 "Split it into smaller files.")  # fmt: skip


class KilledWorker(InvalidInput):
    code = "killed_worker"
    message = N_("Reading “%(name)s” killed the process that read it, %(times)s times in a row. "
                 "Split it into smaller files, or save it anew and upload that.")  # fmt: skip


class UnreadableFile(InvalidInput):
    code = "unreadable_file"
    message = N_("The file cannot be read from the disk: %(reason)s.")


class WeakPassword(InvalidInput):
    code = "weak_password"
    message = N_("The password is too short. Use at least %(least)s characters.")


class InvalidSetting(InvalidInput):
    code = "invalid_setting"
    message = N_("%(name)s is %(got)s, but takes %(takes)s.")


class JobCancelled(Conflict):
    code = "cancelled"
    message = N_("Preparing this document was cancelled. Try again to have it read.")


class Superseded(JobCancelled):
    code = "superseded"
    message = N_("A newer version was uploaded before this one was read.")


class AlreadyElsewhere(Conflict):
    code = "already_elsewhere"
    message = N_("This very file is here already as “%(title)s”. Delete that document first to "
                 "make it a version of this one.")  # fmt: skip


class UploadedAgain(Conflict):
    code = "uploaded_again"
    message = N_("The same file was uploaded again since and is here as “%(title)s”. Delete that "
                 "document first to have this one back, or delete this one forever.")  # fmt: skip


class TextsTooLong(TooLarge):
    code = "texts_too_long"
    message = N_("The two texts have %(characters)s characters together, and no more than "
                 "%(limit)s are compared. Read each of them instead.")  # fmt: skip


class TooManyLines(TextsTooLong):
    code = "too_many_lines"
    message = N_("The two texts have more than %(limit)s lines and sentences together, and no more "
                 "are compared. Read each of them instead.")  # fmt: skip


class ChunkIndexTaken(Conflict):
    code = "chunk_index_taken"
    message = N_("This job has a passage with chunk_index %(index)s already. Choose another, or "
                 "leave it out to add behind the last.")  # fmt: skip


class NoEmbedding(Conflict):
    code = "no_embedding"
    message = N_("This passage has no vector by the model that serves yet, so nothing can be "
                 "compared with it. Try again when the model is built.")  # fmt: skip


class IdempotencyConflict(Conflict):
    code = "idempotency_in_flight"
    message = N_("The same request is still being answered. Wait for it, then ask again.")


class IdempotencyMismatch(InvalidInput):
    code = "idempotency_mismatch"
    message = N_("This Idempotency-Key was used for another request. Use a new one.")


class RateLimited(PortalError):
    code, status = "rate_limited", 429
    message = N_("Too many requests. Wait %(seconds)s seconds and try again.")

    def __init__(self, *, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.retry_after_s = seconds


class InvalidEmbedding(PortalError):
    code, status = "invalid_embedding", 502
    message = N_("The embedding model gave an unusable vector: %(reason)s. "
                 "Check the model's settings.")  # fmt: skip


class Unavailable(PortalError):
    code, status = "unavailable", 503
    message = N_("This is not available right now. Try again in a moment.")
    retry_after_s: int | None = 2


class Overloaded(Unavailable):
    code = "overloaded"
    message = N_("The server has more to do than it can at the moment. Try again in a few seconds.")


class BatchTimedOut(Unavailable):
    code = "batch_timed_out"
    message = N_("The queries before this one took the time that all of them have together. "
                 "Send it again, with fewer at once.")  # fmt: skip


class EmbedderUnavailable(Unavailable):
    code = "embedder_unavailable"
    message = N_("The embedding model cannot be used: %(reason)s.")


class RerankerUnavailable(Unavailable):
    code = "reranker_unavailable"
    message = N_("The re-ranking model cannot be used: %(reason)s.")


class ChatUnavailable(Unavailable):
    code = "chat_unavailable"
    message = N_("The chat model gives no answer: %(reason)s.")


class TooManyAnswers(Unavailable):
    code = "too_many_answers"
    message = N_("As many answers as this server can write at once are being written. "
                 "Try again in a moment.")  # fmt: skip


class TooManyOwnAnswers(PortalError):
    code, status = "too_many_own_answers", 429
    message = N_("%(most)s answers to your questions are being written, and no more are at once. "
                 "Wait for one to end, or stop it.")  # fmt: skip
    retry_after_s = 2


class VectorStoreDisabled(Unavailable):
    code = "vector_store_disabled"
    message = N_("Vector search is switched off on this server. "
                 "Set PORTAL_VECTOR_STORE_ENABLED=true to use it.")  # fmt: skip
    retry_after_s = None


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    message = N_("The database does not answer. Try again in a moment.")


class IssuerUnavailable(Unavailable):
    code = "issuer_unavailable"
    message = N_("Tokens of the sign-in service cannot be checked, because its keys cannot be "
                 "read. Try again in a moment.")  # fmt: skip


class StorageFull(PortalError):
    code, status = "storage_full", 507
    message = N_("The server's disk is full; nothing was stored. Tell your administrator.")


def _megabytes(size_bytes: int) -> str:
    """Rounded up: what there is little of is not nothing."""
    return f"{math.ceil(10 * size_bytes / _MEGABYTE) / 10:.1f}".removesuffix(".0")


def is_disk_full(error: BaseException) -> bool:
    """Whether a file could not be written for want of room, or of a share of it."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


class ServerSetup(PortalError):
    """The machine or its database is not fit to serve; told on the command line."""

    code = "server_setup"
    message = "%(reason)s"


class BackupRefused(PortalError):
    """A backup cannot be taken or restored as things are; told on the command line."""

    code = "backup_refused"
    message = "%(reason)s"


def _tree(error: type[PortalError]) -> Iterator[type[PortalError]]:
    yield error
    for child in error.__subclasses__():
        yield from _tree(child)


MESSAGES = {error.code: error.message for error in _tree(PortalError)}
"""The template behind each code: what a stored failure is told with."""

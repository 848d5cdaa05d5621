"""The choice of what writes answers: the settings' chat model, or an endpoint set by
administrators.

The choice is read for every answer, so that it takes effect at once in every process. A key is
stored encrypted, and only sent to the address that it was entered for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from uuid import UUID

from pydantic import SecretStr

from portal.answering import create_chat_model
from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.answering.writing import endpoints, prompt
from portal.domain.answering import ChatModel, ChatRequest, Source, TextDelta, Turn
from portal.domain.people import User, require_admin
from portal.errors import ChatUnavailable, InvalidInput, NotFound
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people import sealing
from portal.store.answers import writers as writer_store
from portal.store.answers.writers import FailedAnswer, Use
from portal.store.session import Session

_SUBJECT = Subject(SubjectKind.SETTING, "chat", "chat")
_MAX_TRIAL_CHARACTERS = 400
MAX_MODEL_CHARACTERS = 200

EXTRACTIVE = "extractive"
_OPENAI = "openai"

# The sample for trying an endpoint: a chunk and a question that it answers.
_SAMPLES = {
    "zh": (
        "请假制度",
        "员工每年有十五天年假。未休完的年假须在次年三月底前用完。",
        "每年有几天年假？",
    ),
    "en": (
        "Leave policy",
        "Employees have fifteen days of annual leave. Unused days lapse at the end of March.",
        "How many days of annual leave are there?",
    ),
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A stored endpoint: `sealed_key` is its key, encrypted."""

    api_base: str
    sealed_key: str | None = None
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writer:
    """The administrators' choice of what writes answers."""

    provider: str
    model: str | None = None
    api_base: str | None = None
    sealed_key: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The contents of the page of writers. `chosen` is None if the settings decide; `api_base` is
    where questions are sent now, None for quotations and a provider's default address."""

    chosen: Writer | None
    provider: str
    model: str
    api_base: str | None
    endpoint: Endpoint | None
    configured_provider: str
    configured_model: str
    is_key_unreadable: bool


# How long a test waits for the first word.
_TRIAL_S = 15.0


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of asking an endpoint the sample question. An answer waits only `max_first_word_s`
    for its first word."""

    model: str
    first_word_s: float
    total_s: float
    text: str
    max_first_word_s: float

    @property
    def is_too_slow(self) -> bool:
        return self.first_word_s > self.max_first_word_s


def current(services: Services) -> ChatModel:
    """Return the model that writes the next answer."""
    with services.database.begin() as session:
        _, chosen = _read_setup(session)
    if chosen is None:
        return services.chat
    return services.built_model.get(chosen, lambda: _build(services, chosen))


def with_current(services: Services) -> Services:
    """Return the services with the model that writes the next answer, for the whole of that
    answer."""
    return replace(services, chat=current(services))


def without_model(services: Services) -> Services:
    """Return the services with an answer written from quotations and the portal's own replies."""
    if services.chat.only_quotes:
        return services
    return replace(services, chat=ExtractiveChatModel(services.embedder))


def show(services: Services, user: User) -> Overview:
    """Return the current writer and the connected endpoint. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        endpoint, chosen = _read_setup(session)
    model = current(services)
    sealed = endpoint.sealed_key if endpoint else None
    return Overview(
        chosen=chosen,
        provider=model.provider,
        model=model.model,
        api_base=None if model.only_quotes else (chosen or services.settings.chat).api_base,
        endpoint=endpoint,
        configured_provider=services.chat.provider,
        configured_model=services.chat.model,
        is_key_unreadable=sealed is not None and _unseal(services, sealed) is None,
    )


def connect(services: Services, user: User, api_base: str, api_key: str) -> Endpoint:
    """Store an endpoint, which is only used once a model of it is chosen, and load its models.

    Without a key the stored one is kept, if the address is the same; a new key for the address of
    the model in use applies from the next answer. Administrators only. Raises
    InvalidInput, and ChatUnavailable when the models cannot be listed: the endpoint is stored then.
    """
    require_admin(user)
    address = endpoints.check_address(api_base)
    with services.database.begin() as session:
        before, chosen = _read_setup(session)
        key = api_key.strip().encode()
        sealed = sealing.seal(services, key).decode() if key else None
        if sealed is None and before is not None and before.api_base == address:
            sealed = before.sealed_key
        endpoint = Endpoint(address, sealed)
        writer_store.write_setup(session, endpoint=asdict(endpoint))
        # The model in use has a copy of its key, because another endpoint may be connected.
        if sealed and chosen and chosen.api_base == address:
            writer_store.write_setup(session, writer=asdict(replace(chosen, sealed_key=sealed)))
        _record(session, user, before=before.api_base if before else None, after=address)
    return load_models(services, user)


def disconnect(services: Services, user: User) -> None:
    """Delete the endpoint and its key. If one of its models was in use, the model of the settings
    writes answers again. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        endpoint, chosen = _read_setup(session)
        writer_store.write_setup(session, endpoint=None)
        if chosen is not None and chosen.provider == _OPENAI:
            writer_store.write_setup(session, writer=None)
        _record(session, user, before=endpoint.api_base if endpoint else None, after=None)


def load_models(services: Services, user: User) -> Endpoint:
    """Load the endpoint's models again. Administrators only. Raises ChatUnavailable, and NotFound
    if there is no endpoint, or it is disconnected meanwhile."""
    require_admin(user)
    endpoint = _require_endpoint(services)
    listed = endpoints.list_models(
        endpoints.check_address(endpoint.api_base), _unseal(services, endpoint.sealed_key)
    )
    with services.database.begin() as session:
        now, _ = _read_setup(session)
        if now is None:
            raise NotFound
        # Another administrator may have connected another endpoint meanwhile.
        if (now.api_base, now.sealed_key) == (endpoint.api_base, endpoint.sealed_key):
            now = replace(now, models=listed)
            writer_store.write_setup(session, endpoint=asdict(now))
    return now


def choose_model(services: Services, user: User, model: str) -> None:
    """Use a model of the endpoint for all answers. Administrators only. Raises InvalidInput."""
    require_admin(user)
    endpoint = _require_endpoint(services)
    name = _check_model(model)
    _choose(services, user, Writer(_OPENAI, name, endpoint.api_base, endpoint.sealed_key))


def choose_quotations(services: Services, user: User) -> None:
    """Use quotations instead of a model. Administrators only."""
    _choose(services, user, Writer(EXTRACTIVE))


def follow_settings(services: Services, user: User) -> None:
    """Use the model that the settings name. Administrators only."""
    _choose(services, user, None)


def try_out(services: Services, user: User, model: str, language: str) -> Trial:
    """Ask a model of the endpoint the sample question, and wait longer for it than an answer does:
    a local model may have to load first. Administrators only. Raises InvalidInput,
    ChatUnavailable."""
    require_admin(user)
    endpoint = _require_endpoint(services)
    endpoints.check_address(endpoint.api_base)
    name = _check_model(model)
    writer = Writer(_OPENAI, name, endpoint.api_base, endpoint.sealed_key)
    max_first_word_s = services.settings.chat.first_token_timeout_s
    chat = _build(services, writer, first_token_timeout_s=max(max_first_word_s, _TRIAL_S))
    began = time.monotonic()
    first_word_s, text = 0.0, ""
    for event in chat.stream(_sample(language)):
        if isinstance(event, TextDelta):
            first_word_s = first_word_s or time.monotonic() - began
            text += event.text
    if not text:
        raise ChatUnavailable("its endpoint wrote nothing")
    if key := _unseal(services, endpoint.sealed_key):
        text = text.replace(key, "…")
    total_s, shown = time.monotonic() - began, text[:_MAX_TRIAL_CHARACTERS]
    return Trial(name, first_word_s, total_s, shown, max_first_word_s)


def list_uses(services: Services, user: User) -> tuple[Sequence[Use], Sequence[FailedAnswer]]:
    """Return how many answers each model wrote in the last seven days, and its latest failures,
    without any question or answer. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        return writer_store.list_uses(session), writer_store.list_failures(session)


def _choose(services: Services, user: User, writer: Writer | None) -> None:
    require_admin(user)
    with services.database.begin() as session:
        _, before = _read_setup(session)
        writer_store.write_setup(session, writer=asdict(writer) if writer else None)
        _record(session, user, before=_label(before), after=_label(writer))


def _label(writer: Writer | None) -> str | None:
    return (
        " ".join(filter(None, (writer.provider, writer.model, writer.api_base))) if writer else None
    )


def _build(services: Services, writer: Writer, **changes: float) -> ChatModel:
    key = _unseal(services, writer.sealed_key)
    settings = services.settings.chat.model_copy(
        update={
            "provider": writer.provider,
            "model": writer.model,
            "api_base": writer.api_base,
            "api_key": SecretStr(key) if key else None,
            **changes,
        }
    )
    return create_chat_model(settings, services.embedder)


def _sample(language: str) -> ChatRequest:
    """Return a request with one chunk and a question that it answers."""
    title, text, question = _SAMPLES["zh" if language.startswith("zh") else "en"]
    nothing = UUID(int=0)
    source = Source(
        number=1, document_id=nothing, revision_id=None, chunk_id=nothing, title=title,
        media_type="text/plain", text=text, char_start=0, char_end=len(text), language=language,
    )  # fmt: skip
    built = prompt.build([source], language=language[:2])
    turns = (Turn("user", question),)
    return ChatRequest(built.system, turns, question, language[:2], built.sources)


def _require_endpoint(services: Services) -> Endpoint:
    with services.database.begin() as session:
        endpoint, _ = _read_setup(session)
    if endpoint is None:
        raise NotFound
    return endpoint


def _check_model(model: str) -> str:
    name = model.strip()
    if not name or len(name) > MAX_MODEL_CHARACTERS or not name.isprintable():
        raise InvalidInput("the name of a model is missing")
    return name


def _read_setup(session: Session) -> tuple[Endpoint | None, Writer | None]:
    endpoint, writer = writer_store.read_setup(session)
    return (
        Endpoint(**endpoint | {"models": tuple(endpoint["models"])}) if endpoint else None,
        Writer(**writer) if writer else None,
    )


def _record(session: Session, user: User, *, before: str | None, after: str | None) -> None:
    if before != after:
        audit.record(
            session, AuditEvent.SETTINGS_CHANGED, user, _SUBJECT, before=before, after=after
        )


def _unseal(services: Services, sealed: str | None) -> str | None:
    """Return the decrypted key; None if its secret key has been replaced."""
    try:
        return sealing.unseal(services, sealed.encode()).decode() if sealed else None
    except sealing.Unreadable:
        return None

"""Log lines of both formats contain nothing private: forced errors of every known kind."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import httpx
import openai
import psycopg
import pydantic
import pytest
import structlog
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from portal.errors import InvalidSetting, NoSuchAccount
from portal.observability.logs import configure_logs
from portal.observability.redaction import format_exception, scrub
from portal.settings import load_settings

QUESTION = "why was mauve-elephant 退款 refused"
PASSWORD = "hunter2-hunter2"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
URL = f"postgresql://portal:{PASSWORD}@db.example:5432/portal"
LEAKS = ("mauve", "elephant", "退款", PASSWORD, TOKEN, "eyJ", "c2lnbmF0dXJl")

Read = Callable[[], str]


@pytest.fixture(params=["console", "json"])
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    """Yield a function that returns what was logged so far, in one of the formats."""
    root = logging.getLogger()
    handlers, raises = root.handlers, logging.raiseExceptions
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logs(load_settings(log_format=request.param, log_level="debug"))
    yield stream.getvalue
    root.handlers, logging.raiseExceptions = handlers, raises


def psycopg_error() -> None:
    raise psycopg.errors.UniqueViolation(f"Key (name)=({QUESTION}) already exists. {URL}")


def sqlalchemy_error() -> None:
    error = psycopg.OperationalError(f'connection to "{URL}" failed')
    raise DBAPIError.instance(
        "SELECT * FROM documents WHERE body = %(q)s", {"q": QUESTION}, error, psycopg.Error
    )


def httpx_error() -> None:
    request = httpx.Request("GET", f"https://me:{PASSWORD}@api.example/v1?q=mauve-elephant")
    httpx.Response(500, request=request, text=QUESTION).raise_for_status()


def openai_error() -> None:
    request = httpx.Request("POST", "https://api.example/v1")
    response = httpx.Response(400, request=request, json={"error": {"message": QUESTION}})
    raise openai.BadRequestError(
        f"Error code: 400 - {QUESTION}", response=response, body={"message": QUESTION}
    )


def pydantic_error() -> None:
    class Body(pydantic.BaseModel):
        query: int

    Body.model_validate({"query": QUESTION, "token": TOKEN})


def unforeseen_error() -> None:
    secret_question = QUESTION
    try:
        {}[secret_question]
    except KeyError as error:
        raise RuntimeError(f"{QUESTION} {TOKEN} {URL}") from error


def error_in_an_error() -> None:
    try:
        raise ValueError(QUESTION)
    except ValueError:
        raise TypeError(TOKEN)  # noqa: B904 - what is not chained on purpose is told as well


def group_of_errors() -> None:
    raise ExceptionGroup(QUESTION, [ValueError(QUESTION), KeyError(TOKEN)])


FAILURES = (
    psycopg_error,
    sqlalchemy_error,
    httpx_error,
    openai_error,
    pydantic_error,
    unforeseen_error,
    error_in_an_error,
    group_of_errors,
)


def assert_no_leak(lines: str) -> None:
    for leak in LEAKS:
        assert leak not in lines, leak
        assert json.dumps(leak)[1:-1] not in lines, leak


@pytest.mark.parametrize("fail", FAILURES)
def test_exceptions_are_logged_without_their_messages(written: Read, fail) -> None:
    try:
        fail()
    except Exception as error:
        structlog.get_logger("portal.x").error("request_failed", exc_info=error)
        structlog.get_logger("portal.x").exception("again")
        logging.getLogger("some.library").exception("job %d failed: %s", 7, error)
        logging.getLogger("some.library").error(error)
        logging.getLogger("some.library").exception(f"listener error: {error!r}, {error}")  # noqa: G004
        name = type(error).__name__
    lines = written()
    assert lines.count(name) >= 4
    assert f"job 7 failed: {name}" in lines
    assert fail.__name__ in lines, "where it happened is told"
    assert_no_leak(lines)


def test_codes_of_exceptions_are_logged(written: Read) -> None:
    for fail in (psycopg_error, openai_error):
        try:
            fail()
        except (psycopg.Error, openai.OpenAIError):
            structlog.get_logger("x").exception("failed")
    assert "sqlstate 23505" in written()
    assert "status_code 400" in written()


@pytest.mark.parametrize(
    "values",
    [
        {"query": QUESTION},
        {"Title": QUESTION},
        {"access_token": TOKEN},
        {"reason": f"cannot reach {URL}"},
        {"reason": f"Authorization: Bearer {PASSWORD}"},
        {"header": f"it sent {TOKEN}."},
        {"address": "/search?q=mauve-elephant+x"},
        {"body": {"content": QUESTION}},
        {"params": {"inner": [{"password": PASSWORD}, f"password={PASSWORD}"]}},
        {"cause": ValueError(QUESTION)},
    ],
)
def test_values_are_redacted_by_name_and_by_shape(written: Read, values) -> None:
    structlog.get_logger("portal.x").warning("something_happened", **values)
    assert "something_happened" in written()
    assert_no_leak(written())


def test_only_the_first_line_of_a_librarys_message_is_logged(written: Read) -> None:
    message = (
        f"Task exception was never retrieved\nfuture: <Task exception=ValueError('{QUESTION}')>"
    )
    logging.getLogger("asyncio").error(message)
    logging.getLogger("some.library").warning("GET %s failed", f"https://h/x?q={QUESTION[8:21]}")
    assert "never retrieved" in written()
    assert "GET https://h/x?[redacted] failed" in written()
    assert_no_leak(written())


def test_line_that_cannot_be_formatted_shows_no_arguments(written: Read) -> None:
    numbers = "%d of %d"
    logging.getLogger("some.library").error(numbers, QUESTION)
    assert_no_leak(written())


def test_ids_of_request_and_trace_are_in_each_line(written: Read) -> None:
    from portal.observability import tracing

    tracing.begin("a-request-id", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    structlog.get_logger("portal.x").info("one")
    logging.getLogger("some.library").info("two")
    structlog.contextvars.clear_contextvars()
    lines = [line for line in written().splitlines() if line]
    assert len(lines) == 2
    for line in lines:
        assert "a-request-id" in line
        assert "4bf92f3577b34da6a3ce929d0e0e4736" in line


def test_settings_an_operator_must_fix_are_logged() -> None:
    error = InvalidSetting(name="PORTAL_LOG_LEVEL", got="'loud'", takes="'info'")
    assert "PORTAL_LOG_LEVEL" in "\n".join(format_exception(error))
    assert "ada" not in "\n".join(format_exception(NoSuchAccount(name="ada")))


@pytest.mark.parametrize(
    ("given", "scrubbed"),
    [
        ("redis://:secret@host:6379/0", "redis://[redacted]@host:6379/0"),
        (f"x {URL} y", "x postgresql://[redacted]@db.example:5432/portal y"),
        ("postgresql://u:p@ss@h/db", "postgresql://[redacted]@h/db"),
        ("api_key: 'abc def'", "api_key: [redacted]"),
        ("sk-abcdefgh1234", "[redacted]"),
        ("GET /search?q=a&b=c HTTP/1.1", "GET /search?[redacted] HTTP/1.1"),
        ("scan --token abc --deep {file}", "scan --token [redacted] --deep {file}"),
        ('scan --api-key "two words" {file}', "scan --api-key [redacted] {file}"),
        ("scan --passphrase -x", "scan --passphrase [redacted]"),
        ("a --monkey business", "a --monkey business"),
        ("-" * 20_000, "-" * 20_000),
        ("is it? yes", "is it? yes"),
        ("a quiet line of 12 tokens", "a quiet line of 12 tokens"),
    ],
)
def test_secrets_inside_a_text_are_scrubbed(given: str, scrubbed: str) -> None:
    assert scrub(given) == scrubbed


def test_bound_parameters_of_a_failing_statement_are_not_logged(written: Read) -> None:
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT * FROM nothing WHERE x = :q"), {"q": QUESTION})
    except DBAPIError:
        structlog.get_logger("x").exception("failed")
    assert "OperationalError" in written()
    assert_no_leak(written())

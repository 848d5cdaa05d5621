"""The page of answering models: an endpoint is connected, tested, chosen and monitored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.container import build_services
from portal.errors import NotFound
from portal.services.answers import conversations, writers
from tests.conftest import Portal
from tests.factories.answers import ask
from tests.factories.cases import for_each
from tests.factories.servers.chat import FakeChat, Hangup, Pause, Status, fake_chat

PAGE = "/admin/answers"
KEY = "sk-very-secret-0123456789"
LEAVE = "Employees have fifteen days of annual leave."
QUESTION = "How many days of annual leave do employees have?"
QUOTES = "Quotations only · no language model"


@pytest.fixture
def endpoint() -> Iterator[FakeChat]:
    with fake_chat(["Fifteen ", "days [1]."]) as chat:
        chat.models = Status(200, {"data": [{"id": "qwen3:8b"}, {"id": "gemma3"}]})
        yield chat


def get(client: FlaskClient, portal: Portal, path: str = PAGE) -> str:
    headers = portal.headers() | {"Accept-Language": "en"}
    return client.get(path, headers=headers).get_data(as_text=True)


def post(client: FlaskClient, portal: Portal, path: str, **form: str) -> tuple[int, str]:
    headers = portal.headers() | {"Accept-Language": "en"}
    answer = client.post(f"{PAGE}{path}", headers=headers, data=form)
    return answer.status_code, answer.get_data(as_text=True)


def connect(
    client: FlaskClient, portal: Portal, chat: FakeChat, key: str = KEY, expected: int = 303
) -> str:
    status, page = post(client, portal, "/endpoint", api_base=chat.url, api_key=key)
    assert status == expected, page
    return page


def answer(portal: Portal, services=None, question=QUESTION):
    services = services or portal.services
    conversation = conversations.create(services, portal.admin)
    return ask(services, portal.admin, conversation.id, question)


def test_models_of_an_endpoint_are_listed_with_its_key(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    connect(client, portal, endpoint)
    assert endpoint.listings[0]["Authorization"] == f"Bearer {KEY}"
    page = get(client, portal)
    assert page.index(">gemma3<") < page.index(">qwen3:8b<")


def test_chosen_model_writes_in_every_process_without_a_restart(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    portal.add(LEAVE)
    other = build_services(portal.services.settings)
    assert answer(portal, other).replay.chat_provider == "extractive"
    connect(client, portal, endpoint)
    assert post(client, portal, "/writer", model="gemma3")[0] == 303
    for services in (portal.services, other):
        written = answer(portal, services)
        assert written.content == "Fifteen days [1]."
        assert written.replay.chat_model == "gemma3"
    headers, body = endpoint.requests[-1]
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == "gemma3"
    assert post(client, portal, "/writer", writer="quotations")[0] == 303
    assert answer(portal, other).replay.chat_provider == "extractive"
    other.database.dispose()


def test_key_is_stored_encrypted_and_never_shown(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    with portal.services.database.begin() as session:
        stored = str(session.execute(text("SELECT * FROM chat_setup")).all())
        logged = str(session.execute(text("SELECT * FROM audit_log")).all())
    assert endpoint.url in stored
    assert endpoint.url in logged
    for seen in (stored, logged, get(client, portal), get(client, portal, "/chat")):
        assert KEY not in seen
    assert "A key is stored, encrypted." in get(client, portal)


def test_key_is_sent_only_to_the_address_it_was_entered_for(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    connect(client, portal, endpoint)
    connect(client, portal, endpoint, key="")
    assert endpoint.listings[-1]["Authorization"] == f"Bearer {KEY}"
    with fake_chat() as other:
        connect(client, portal, other, key="")
        assert "Authorization" not in other.listings[0]


def test_redirects_are_not_followed(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    with fake_chat() as elsewhere:
        endpoint.models = Status(302, b"", {"Location": f"{elsewhere.url}/models"})
        page = connect(client, portal, endpoint, expected=503)
        assert elsewhere.listings == []
    assert "its endpoint answered 302" in page


@for_each("address", ["ftp://localhost/v1", "localhost:11434", "http://me:secret@localhost/v1",
    "http://169.254.169.254/v1", "http://[fe80::1]/v1", "http://0.0.0.0/v1",
    "http://224.0.0.1"])  # fmt: skip
def test_address_that_no_model_server_has_is_refused(
    client: FlaskClient, portal: Portal, address: str
) -> None:
    status, page = post(client, portal, "/endpoint", api_base=address, api_key=KEY)
    assert status == 422
    assert 'data-field="api_base"' in page
    assert KEY not in page
    assert 'data-testid="writer-form"' not in get(client, portal)


@pytest.mark.parametrize(
    "listing",
    [Status(401, {"error": "secret words"}), Status(200, b"<html>"), Status(200, {"data": 3}),
     Status(200, b"[" * 2_000_000)],
)  # fmt: skip
def test_endpoint_without_a_model_list_is_kept_and_accepts_a_name(
    client: FlaskClient, portal: Portal, endpoint: FakeChat, listing: Status
) -> None:
    endpoint.models = listing
    page = connect(client, portal, endpoint, expected=503)
    assert "The language model did not answer" in page
    refused = isinstance(listing.body, dict) and "error" in listing.body
    assert ("its endpoint refused the API key (401)" in page) == refused
    assert "secret words" not in page
    assert "No model list available. Enter a model name." in page
    assert post(client, portal, "/writer", model="")[0] == 422
    assert post(client, portal, "/writer", model="llama")[0] == 303


def test_unreachable_address_is_reported_beside_its_field_alone(
    client: FlaskClient, portal: Portal
) -> None:
    address = "http://localhost:9/v1"
    status, page = post(client, portal, "/endpoint", api_base=address, api_key="")
    assert status == 503
    assert page.count(f"Could not reach {address}.") == 1
    assert "ConnectError" not in page
    assert "listed no models" not in page
    field = page.split('id="field-api_base"')[1].split("</div>")[0]
    for part in ("autofocus", 'aria-describedby="error-api_base"', f'value="{address}"', "Could"):
        assert part in field
    assert "Could not reach" not in get(client, portal)
    assert post(client, portal, "/models")[0] == 503


def test_trial_shows_the_answer_and_the_time_to_its_first_word(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    connect(client, portal, endpoint)
    status, page = post(client, portal, "/test", model="gemma3")
    assert status == 200
    assert "gemma3 answered. First token after 0" in page
    assert "Answers wait" not in page
    assert "Fifteen days [1]." in page
    assert QUOTES in page  # Testing a model does not choose it.


def test_trial_waits_for_a_model_that_is_too_slow_for_answers(make_services, endpoint) -> None:
    portal = Portal.of(make_services(chat={"first_token_timeout_s": 0.1}))
    client = portal.app().test_client()
    connect(client, portal, endpoint)
    endpoint.scripts[:] = [[Pause(0.3), "Fifteen days [1]."]]
    status, page = post(client, portal, "/test", model="gemma3")
    assert status == 200
    assert "Answers wait 0.1 s for the first token" in page
    assert "PORTAL_CHAT__FIRST_TOKEN_TIMEOUT_S" in page


def test_trial_of_an_endpoint_that_fails_says_why(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    endpoint.scripts[:] = [[Status(404, {"error": {"message": "no such model"}})]]
    connect(client, portal, endpoint)
    status, page = post(client, portal, "/test", model="gemma3")
    assert status == 503
    assert "its endpoint answered 404" in page


def test_failures_are_listed_without_the_question(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    portal.add(LEAVE)
    endpoint.scripts[:] = [["Fifteen", Hangup()]]
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    assert answer(portal).status == "unavailable"
    page = get(client, portal)
    assert "dropped the connection" in page.split('data-testid="writer-failures"')[1]
    assert QUESTION not in page


def test_composer_and_answers_name_the_answering_model(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    portal.add(LEAVE)
    first = answer(portal)
    address = f"/chat/{first.conversation_id}"
    assert f'data-testid="composer-writer">{QUOTES}' in get(client, portal, "/chat")
    page = get(client, portal, address)
    assert f'data-testid="answer-writer">{QUOTES}' in page
    assert page.count('title="Connect a language model"') == 1
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    page = get(client, portal, address)
    assert 'data-testid="composer-writer">gemma3' in page
    assert f'data-testid="answer-writer">{QUOTES}' in page


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("hello", "Hello!"),
        ("你好", "你好"),
        ("谢谢！", "不客气"),
        ("What documents are there?", "1 of 1 documents are in use"),
        ("12 * 13", "156"),
    ],
)
def test_message_that_asks_nothing_of_the_documents_is_not_sent_to_the_model(
    client: FlaskClient, portal: Portal, endpoint: FakeChat, message: str, said: str
) -> None:
    portal.add(LEAVE)
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    written = answer(portal, question=message)
    assert said in written.content
    assert written.citations == ()
    assert written.replay.chat_provider == "extractive"
    assert endpoint.requests == []
    assert answer(portal).replay.chat_model == "gemma3"


def test_removed_endpoint_writes_no_more_answers(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    portal.add(LEAVE)
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    assert post(client, portal, "/endpoint/remove")[0] == 303
    assert answer(portal).replay.chat_provider == "extractive"
    with portal.services.database.begin() as session:
        assert session.execute(text("SELECT endpoint, writer FROM chat_setup")).one() == (
            None,
            None,
        )


def test_servers_are_named_with_their_addresses(client: FlaskClient, portal: Portal) -> None:
    page = get(client, portal)
    for name, address in (
        ("Ollama", "http://localhost:11434/v1"),
        ("vLLM", "http://localhost:8000/v1"),
        ("llama.cpp", "http://localhost:8080/v1"),
    ):
        assert name in page
        assert address in page
    assert 'value="http://localhost:8080/v1"' in get(client, portal, f"{PAGE}?server=llama.cpp")


def test_new_secret_key_asks_for_the_key_of_the_endpoint_again(
    portal: Portal, endpoint: FakeChat
) -> None:
    connect(create_app(portal.services).test_client(), portal, endpoint)
    settings = portal.services.settings.model_copy(
        update={"secret_key": type(portal.services.settings.secret_key)("another " * 8)}
    )
    rotated = build_services(settings)
    client = create_app(rotated).test_client()
    headers = Portal(rotated, portal.admin).headers()
    page = client.get(PAGE, headers=headers | {"Accept-Language": "en"}).get_data(as_text=True)
    assert "Enter it again." in page
    rotated.database.dispose()


def test_loading_models_does_not_restore_a_disconnected_endpoint(
    client: FlaskClient, portal: Portal, endpoint: FakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(client, portal, endpoint)

    def disconnect(*_: object) -> list[str]:
        writers.disconnect(portal.services, portal.admin)
        return ["qwen3:8b"]

    monkeypatch.setattr(writers.endpoints, "list_models", disconnect)
    with pytest.raises(NotFound):
        writers.load_models(portal.services, portal.admin)
    assert "qwen3:8b" not in get(client, portal)


def test_new_key_for_the_address_of_the_model_in_use_applies_at_once(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    portal.add(LEAVE)
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    connect(client, portal, endpoint, key="sk-new-9876543210")
    assert answer(portal).status == "done"
    assert endpoint.requests[-1][0]["Authorization"] == "Bearer sk-new-9876543210"


def test_page_shows_where_questions_are_sent_while_another_endpoint_is_connected(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    page = get(client, portal)
    assert f"sent to {endpoint.url}." in page
    assert 'data-testid="writer-elsewhere"' not in page
    with fake_chat() as other:
        other.models = endpoint.models
        connect(client, portal, other)
        page = get(client, portal)
    assert f"sent to {endpoint.url}." in page
    assert f"This is not the connected endpoint, {other.url}." in page


def test_trial_does_not_show_a_key_that_the_endpoint_repeats(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    endpoint.scripts[:] = [["Your key is ", KEY[:8], KEY[8:], "."]]
    connect(client, portal, endpoint)
    page = post(client, portal, "/test", model="gemma3")[1]
    assert "Your key is …." in page
    assert KEY not in page


def test_answer_that_quotes_instead_is_named_as_such(
    client: FlaskClient, portal: Portal, endpoint: FakeChat
) -> None:
    portal.add(LEAVE)
    endpoint.scripts[:] = [["A month", Hangup()]]
    connect(client, portal, endpoint)
    post(client, portal, "/writer", model="gemma3")
    page = get(client, portal, f"/chat/{answer(portal).conversation_id}")
    assert f'data-testid="answer-writer">{QUOTES}' in page
    assert "The documents are quoted instead:" in page
    assert "Answer unavailable." not in page
    assert "A month" not in page
    # The failure still counts for the model.
    uses = get(client, portal).split('data-testid="writer-uses"')[1]
    assert "<td>gemma3</td>" in uses

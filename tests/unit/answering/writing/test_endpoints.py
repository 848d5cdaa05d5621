"""Addresses of endpoints and the lists of their models."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.answering.writing import endpoints
from portal.answering.writing.endpoints import check_address, list_models
from portal.errors import ChatUnavailable, EndpointUnreachable, InvalidInput
from tests.factories.servers.chat import Pause, Raw, Status, fake_chat


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[::169.254.169.254]",
        "[fe80::1]",
        "0.0.0.0",
        "[ff02::1]",
    ],
)
def test_link_local_host_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(InvalidInput):
        check_address(f"http://{host}/v1")


def test_loopback_address_is_accepted() -> None:
    assert check_address(" http://127.0.0.1:11434/v1/ ") == "http://127.0.0.1:11434/v1"


def test_name_that_cannot_be_a_host_is_unavailable() -> None:
    with pytest.raises(ChatUnavailable, match="Could not reach http://"):
        list_models("http://-ü.com/v1", None)


def test_model_list_has_one_time_limit_for_all_of_its_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoints, "_TIMEOUT_S", 0.5)
    listed = json.dumps({"data": [{"id": "gemma3"}]}).encode()
    with fake_chat() as chat:
        chat.models = [step for byte in listed for step in (Raw(bytes([byte])), Pause(0.1))]
        with pytest.raises(EndpointUnreachable):
            list_models(chat.url, None)


def test_models_are_listed_from_a_thread_that_runs_an_event_loop() -> None:
    async def listed() -> tuple[str, ...]:
        return list_models(chat.url, None)

    with fake_chat() as chat:
        chat.models = Status(200, {"data": [{"id": "gemma3"}]})
        # The thread of the tests may run a loop already, that of a browser.
        with ThreadPoolExecutor(max_workers=1) as thread:
            assert thread.submit(asyncio.run, listed()).result() == ("gemma3",)

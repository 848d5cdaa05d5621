"""The OpenAI-compatible provider against a server of our own that speaks the protocol."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.answering.markers import MarkerStream
from portal.answering.writing.openai import HEARTBEAT_S, OpenAIChatModel
from portal.domain.answering import ChatRequest, Heartbeat, SearchCall, TextDelta, Truncated, Turn
from portal.errors import ChatUnavailable
from tests.factories.servers.chat import (
    Call,
    Die,
    Hangup,
    Pause,
    Raw,
    Status,
    Until,
    Whole,
    fake_chat,
)
from tests.factories.servers.endpoint import dead_port, wait_until
from tests.unit.answering.sources import source

KEY = "sk-very-secret-4711"
# The delay that a busy machine may add. Each fault here would cost more.
SLACK_S = 6


def request(**changes):
    chosen = {"system": "Rules.", "turns": (Turn("user", "Why?"),), "question": "Why?"}
    return ChatRequest(**(chosen | {"language": "en", "sources": ()} | changes))


@pytest.fixture
def model():
    made = []

    def make(chat, **changes):
        chosen = {"api_base": chat.url, "api_key": KEY, "first_token_timeout_s": 20}
        made.append(OpenAIChatModel(**(chosen | changes)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def first_word(events):
    """Return the first event that is not a heartbeat."""
    return next(event for event in events if event != Heartbeat())


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_answer_comes_in_the_pieces_that_were_sent(model):
    with fake_chat(["One ", "two ", "知识"]) as chat:
        events = list(model(chat, model="some-model").stream(request()))
        assert [e.text for e in events if isinstance(e, TextDelta)] == ["One ", "two ", "知识"]
        headers, body = chat.requests[0]
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert body["model"] == "some-model"
        assert body["stream"] is True
        assert [m["role"] for m in body["messages"]] == ["system", "user"]
        assert "tools" not in body


def test_each_piece_arrives_before_the_next_is_sent(model):
    more = Until()
    with fake_chat(["First", more, "second"]) as chat:
        events = model(chat).stream(request())
        assert first_word(events) == TextDelta("First")
        assert not more.event.is_set()
        more.event.set()
        assert text_of(events) == "second"


def test_slow_endpoint_is_abandoned_at_the_first_token_timeout(model):
    with fake_chat([Pause(), "late"]) as chat:
        began = time.monotonic()
        with pytest.raises(ChatUnavailable, match=r"within 2 seconds"):
            list(model(chat, first_token_timeout_s=2).stream(request()))
        assert time.monotonic() - began < 2 + SLACK_S
        wait_until(lambda: chat.left == 1, within_s=10, complaint="the request goes on")


def test_whole_answer_has_one_timeout(model):
    with fake_chat(["x", Pause(0.2)] * 50) as chat:
        began = time.monotonic()
        with pytest.raises(ChatUnavailable, match=r"within 0\.8 seconds"):
            list(model(chat, timeout_s=0.8).stream(request()))
        assert time.monotonic() - began < 0.8 + SLACK_S


def test_dead_endpoint_is_reported_at_once_without_the_key(model):
    chat = type("Chat", (), {"url": f"http://127.0.0.1:{dead_port()}/v1"})
    began = time.monotonic()
    with pytest.raises(ChatUnavailable) as failure:
        list(model(chat).stream(request()))
    assert time.monotonic() - began < SLACK_S
    assert KEY not in str(failure.value)
    assert failure.value.status == 503


def test_interrupted_answer_is_an_error_and_not_retried(model):
    with fake_chat(["Half an ", "answer", Die()]) as chat:
        got = []
        with pytest.raises(ChatUnavailable):
            read_into(got, model(chat).stream(request()))
        assert text_of(got) == "Half an answer"
        assert len(chat.requests) == 1, "what was begun must not be begun again"


def test_clean_end_without_a_finish_reason_is_an_error(model):
    with fake_chat(["Half an ", "answer", Hangup()]) as chat:
        got = []
        with pytest.raises(ChatUnavailable, match="dropped the connection"):
            read_into(got, model(chat).stream(request()))
        assert text_of(got) == "Half an answer"


def read_into(got, events):
    for event in events:
        got.append(event)


def test_failure_before_the_first_word_is_retried(model):
    scripts = [[Status(503, {})], [Die()], ["There."]]
    with fake_chat(*scripts) as chat:
        assert text_of(model(chat).stream(request())) == "There."
        assert len(chat.requests) == 3


def test_long_retry_after_is_not_waited_for(model):
    with fake_chat([Status(429, {}, {"Retry-After": "60"})]) as chat:
        began = time.monotonic()
        with pytest.raises(ChatUnavailable, match="429"):
            list(model(chat).stream(request()))
        assert time.monotonic() - began < SLACK_S
        assert len(chat.requests) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"data: {not json\n\n",
        b"data: [1, 2]\n\n",
        b'data: {"choices": "none"}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": [{"index": "x"}]}}]}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"\xff\xfe\x00 nothing of the kind\n" * 10,
    ],
)
def test_malformed_events_end_the_answer_with_a_reason(model, content):
    with fake_chat(["Begun ", Raw(content), Die()]) as chat:
        got = []
        with pytest.raises(ChatUnavailable):
            read_into(got, model(chat).stream(request()))
        assert text_of(got) == "Begun "


def test_an_endless_event_is_not_kept_in_memory(model):
    endless = [Raw(b"data: " + b"x" * 5_000_000), Pause()]
    with fake_chat(endless) as chat, pytest.raises(ChatUnavailable, match="protocol"):
        list(model(chat).stream(request()))


def test_comments_and_odd_line_endings_are_accepted(model):
    odd = b': ping\r\n\r\nevent: x\r\ndata: {"choices": []}\r\n\r\n'
    with fake_chat([Raw(odd), "Fine", Raw(odd)]) as chat:
        assert text_of(model(chat).stream(request())) == "Fine"


def test_server_that_does_not_stream_is_accepted(model):
    with fake_chat([Whole("All at once [1].")]) as chat:
        assert text_of(model(chat).stream(request())) == "All at once [1]."


def test_web_page_instead_of_an_api_is_an_error(model):
    page = Status(200, b"<html>welcome</html>", {"Content-Type": "text/html"})
    with fake_chat([page]) as chat, pytest.raises(ChatUnavailable):
        list(model(chat).stream(request()))


def test_endpoint_error_does_not_show_the_key(model):
    body = {"error": {"message": f"Incorrect API key provided: {KEY}."}}
    with fake_chat([Status(401, body)]) as chat:
        with pytest.raises(ChatUnavailable) as failure:
            list(model(chat).stream(request()))
        assert "401" in str(failure.value)
        assert KEY not in str(failure.value)
    with fake_chat([Raw(b'data: {"error": {"message": "no key %s"}}\n\n' % KEY.encode())]) as chat:
        with pytest.raises(ChatUnavailable) as failure:
            list(model(chat).stream(request()))
        assert KEY not in str(failure.value)


def test_redirect_is_not_followed_with_the_key(model):
    with (
        fake_chat(["never"]) as other,
        fake_chat([Status(307, {}, {"Location": other.url})]) as chat,
    ):
        with pytest.raises(ChatUnavailable, match="redirects"):
            list(model(chat).stream(request()))
        assert not other.requests


def test_model_may_search_again(model):
    with fake_chat([Call("annual leave 年假")]) as chat:
        events = list(model(chat).stream(request(can_search=True)))
        assert [e for e in events if isinstance(e, SearchCall)] == [
            SearchCall("call_a", "annual leave 年假")
        ]
        assert chat.requests[0][1]["tools"][0]["function"]["name"] == "search"


def test_calls_of_unknown_tools_are_refused(model):
    with fake_chat([Call("rm -rf", name="shell")]) as chat, pytest.raises(ChatUnavailable):
        list(model(chat).stream(request(can_search=True)))


def test_endpoint_without_tools_is_asked_without_them(model):
    with fake_chat([Status(400, {"error": {"message": "tools"}})], ["Plain."]) as chat:
        one = model(chat)
        assert one.takes_tools
        assert text_of(one.stream(request(can_search=True))) == "Plain."
        assert not one.takes_tools
        assert "tools" in chat.requests[0][1]
        assert "tools" not in chat.requests[1][1]


def test_refusal_that_is_not_about_tools_keeps_them(model):
    with fake_chat([Status(400, {"error": {"message": "too long"}})]) as chat:
        one = model(chat)
        with pytest.raises(ChatUnavailable, match="too long"):
            list(one.stream(request(can_search=True)))
        assert ["tools" in body for _, body in chat.requests] == [True, False]
        assert one.takes_tools


def test_characters_that_cannot_be_stored_are_replaced(model):
    """NUL and lone surrogates are replaced; surrogate halves that arrive separately are joined."""
    pieces = ("smile \\ud83d", "\\ude42 lone \\ud83d", " nul \\u0000.")
    sent = "".join(
        f'data: {{"choices": [{{"delta": {{"content": "{piece}"}}}}]}}\n\n' for piece in pieces
    )
    with fake_chat([Raw(sent.encode())]) as chat:
        assert text_of(model(chat).stream(request())) == "smile 🙂 lone \ufffd nul  ."
    failure = {"error": {"message": "odd \0 thing \ud800"}}
    with fake_chat([Status(400, failure)]) as chat:
        with pytest.raises(ChatUnavailable) as caught:
            list(model(chat).stream(request()))
        assert "\0" not in caught.value.params["reason"]


def test_closing_the_stream_ends_the_request_at_once_even_in_silence(model):
    with fake_chat(["Hello", Pause()]) as chat:
        events = model(chat).stream(request())
        assert first_word(events) == TextDelta("Hello")
        # During silence, a heartbeat lets the reader leave.
        began = time.monotonic()
        assert next(events) == Heartbeat()
        assert time.monotonic() - began < HEARTBEAT_S + SLACK_S
        events.close()
        wait_until(lambda: chat.active == 0, within_s=10, complaint="the request goes on")
        assert chat.left == 1


def test_stream_can_be_closed_before_the_first_word(model):
    with fake_chat([Pause()]) as chat:
        events = model(chat, first_token_timeout_s=30).stream(request())
        assert next(events) == Heartbeat()
        events.close()
        wait_until(lambda: chat.active == 0, within_s=10, complaint="the request goes on")


def test_reasoning_counts_as_a_sign_of_life(model):
    thought = b'data: {"choices": [{"delta": {"reasoning_content": "hm"}}]}\n\n'
    with fake_chat([Raw(thought), Pause(3), "Done."]) as chat:
        events = list(model(chat, first_token_timeout_s=2).stream(request()))
        assert text_of(events) == "Done."


@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>Let me see. [1]</think>\n\nDone."],
        ["\n<th", "ink>Let me ", "see.</thi", "nk>", "\n\n", "Done", "."],
        ["<think>", "</think>", "<think>Or not.</think>Done."],
    ],
)
def test_reasoning_within_the_text_is_not_shown(model, pieces):
    with fake_chat(pieces) as chat:
        assert text_of(model(chat).stream(request())) == "Done."


@pytest.mark.parametrize("pieces", [["<", "b> is bold"], ["See <think>", "x</think>"]])
def test_other_text_in_angle_brackets_is_kept(model, pieces):
    with fake_chat(pieces) as chat:
        assert text_of(model(chat).stream(request())) == "".join(pieces)


def test_endpoint_that_falls_silent_within_an_answer_is_abandoned(model):
    with fake_chat(["Half an ", Pause()]) as chat:
        got = []
        with pytest.raises(ChatUnavailable, match=r"fell silent for 0\.5 seconds"):
            read_into(
                got,
                model(chat, first_token_timeout_s=0.5, max_silence_s=0.1).stream(request()),
            )
        assert text_of(got) == "Half an "


def test_answer_that_reaches_the_limit_of_tokens_is_truncated(model):
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
    with fake_chat(["Half an ", Raw(end)]) as chat:
        events = [one for one in model(chat).stream(request()) if one != Heartbeat()]
        assert events == [TextDelta("Half an "), Truncated()]


def test_no_thread_is_left_behind():
    with fake_chat(["a ", "b"]) as chat, fake_chat(["a", Die()]) as dying:
        before = threading.active_count()
        models = [OpenAIChatModel(api_base=one.url, timeout_s=5) for one in (chat, dying)]
        for _ in range(20):
            list(models[0].stream(request()))
            with pytest.raises(ChatUnavailable):
                list(models[1].stream(request()))
            left = models[0].stream(request())
            next(left)
            left.close()
        for one in models:
            one.close()
        wait_until(
            lambda: threading.active_count() <= before, within_s=10, complaint="threads are left"
        )


def test_readers_of_one_model_do_not_wait_for_each_other(model):
    all_are_there = Until()
    with fake_chat([all_are_there, "there"]) as chat, ThreadPoolExecutor(8) as threads:
        one = model(chat)
        answers = [threads.submit(lambda: text_of(one.stream(request()))) for _ in range(8)]
        try:
            wait_until(lambda: chat.active == 8, within_s=20, complaint="a reader waits")
        finally:
            all_are_there.event.set()
        assert [answer.result() for answer in answers] == ["there"] * 8


def test_shutting_down_ends_streams(model):
    with fake_chat(["x", Pause()]) as chat:
        one = model(chat)
        events = one.stream(request())
        next(events)
        one.close()
        with pytest.raises(ChatUnavailable):
            list(events)


def test_false_markers_of_a_model_are_removed(model):
    script = ["True [2", "]. False [9] and 【", "7】. ![x](http://evil/", "?q=secret) ok"]
    with fake_chat(script) as chat:
        markers = MarkerStream([source(1), source(2)])
        pieces = []
        for event in model(chat).stream(request()):
            if isinstance(event, TextDelta):
                pieces += markers.feed(event.text)
        pieces += markers.close()
        content = "".join(piece.text for piece in pieces)
        assert content == "True [1]. False and. [x] ok"
        assert [piece.marker for piece in pieces if piece.marker] == [1]
        assert markers.order == (2,)

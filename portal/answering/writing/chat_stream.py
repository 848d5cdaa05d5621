"""The response stream of an OpenAI-compatible endpoint, as events.

Server-sent events with JSON data: pieces of text, pieces of tool calls, a finish reason,
``[DONE]``. A server that does not stream answers with one JSON object, which is accepted too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from portal.answering.writing.prompt import SEARCH_TOOL
from portal.domain.answering import ChatEvent, Heartbeat, SearchCall, TextDelta, Truncated
from portal.text.characters.storable import storable

_MAX_CALLS = 2
_MAX_QUERY_LENGTH = 1000
_MAX_BYTES = 4 * 1024 * 1024
_THINK, _END_THINK = "<think>", "</think>"


class Malformed(Exception):
    """The endpoint sent something that violates the protocol."""


class Refused(Exception):
    """The endpoint reported an error within its answer; the message is the endpoint's."""


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


class _WithoutThoughts:
    """A filter that drops `<think>…</think>` from the beginning of an answer: servers that do not
    parse the reasoning of a model send it as part of the text."""

    def __init__(self) -> None:
        self._held = ""
        self._has_begun = False

    def feed(self, text: str) -> str:
        """Return what belongs to the answer; nothing while the text may be reasoning."""
        if self._has_begun:
            return text
        self._held = (self._held + text).lstrip()
        while self._held.startswith(_THINK):
            _, end, rest = self._held.partition(_END_THINK)
            if not end:
                # Only as much as the end of the tag needs, because reasoning is long.
                self._held = _THINK + self._held[len(_THINK) :][-len(_END_THINK) :]
                return ""
            self._held = rest.lstrip()
        if _THINK.startswith(self._held):
            return ""
        self._has_begun = True
        return self._held


class ChatStreamReader:
    """A reader of the events of one answer."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._half = ""
        self._thoughts = _WithoutThoughts()
        self.is_finished = False
        """Whether the endpoint has marked the answer as complete; if not, it broke off."""
        self.is_done = False
        """Whether the stream has ended."""

    def read(self, data: str) -> Iterator[ChatEvent]:
        """Yield the events of one piece, or of a whole answer. Raises Malformed, Refused."""
        if data == "[DONE]":
            self.is_finished = self.is_done = True
        if not data or self.is_done:
            return
        try:
            body = json.loads(data)
            if body.get("error"):
                raise Refused(_words(body["error"]))
            choices = body.get("choices") or ()
            choice = choices[0] if choices else {}
            piece = choice.get("delta") or choice.get("message") or {}
            yield from self._text(piece)
            self._collect(piece.get("tool_calls") or ())
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
            raise Malformed from error
        if reason := choice.get("finish_reason"):
            self.is_finished = True
            if reason == "length":
                yield Truncated()

    def calls(self) -> list[SearchCall]:
        """Return the searches that the model requested. It was given no other tools."""
        asked = [call for _, call in sorted(self._calls.items()) if call.name == SEARCH_TOOL]
        found = [SearchCall(call.id or f"call_{n}", _query(call)) for n, call in enumerate(asked)]
        return [call for call in found if call.query][:_MAX_CALLS]

    def _text(self, piece: dict[str, Any]) -> Iterator[ChatEvent]:
        text = piece.get("content")
        if isinstance(text, str) and text:
            text = self._half + text
            # Some servers send the two surrogates of an emoji separately.
            self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
            text = self._thoughts.feed(joined_surrogates(text.removesuffix(self._half)))
            yield TextDelta(text) if text else Heartbeat()
        elif piece.get("reasoning_content") or piece.get("reasoning"):
            yield Heartbeat()  # Reasoning is not shown, but proves the model is alive.

    def _collect(self, calls: Any) -> None:
        for place, part in enumerate(calls):
            call = self._calls.setdefault(int(part.get("index", place)), _Call())
            function = part.get("function") or {}
            call.id = call.id or str(part.get("id") or "")
            call.name = call.name or str(function.get("name") or "")
            call.arguments += str(function.get("arguments") or "")


def _query(call: _Call) -> str:
    try:
        query = json.loads(call.arguments)["query"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return joined_surrogates(query).strip()[:_MAX_QUERY_LENGTH] if isinstance(query, str) else ""


def joined_surrogates(text: str) -> str:
    """Return storable text, with halves of a surrogate pair that came apart joined."""
    return storable(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _words(error: Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return str(said or "")


async def data_of(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the data of each event of a stream as it arrives, or the whole body if it is not a
    stream. Raises Malformed when it is too long."""
    is_whole = response.headers.get("content-type", "").startswith("application/json")
    held, received = b"", 0
    async for part in response.aiter_bytes():
        received += len(part)
        if received > _MAX_BYTES:
            raise Malformed
        held += part
        if is_whole:
            continue
        *whole, held = held.split(b"\n")
        for line in whole:
            # The rest are comments, event names, and the empty lines between events.
            if line.startswith(b"data:"):
                yield line[len(b"data:") :].decode(errors="replace").strip()
    if is_whole or held.startswith(b"data:"):
        yield held.removeprefix(b"data:").decode(errors="replace").strip()


async def start_of(response: httpx.Response, max_bytes: int) -> bytes:
    """Return the beginning of an answer: what has arrived once it exceeds `max_bytes`."""
    start = b""
    async for part in response.aiter_bytes():
        start += part
        if len(start) > max_bytes:
            break
    return start

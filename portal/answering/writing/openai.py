"""The client for servers with OpenAI's chat protocol, streaming."""

from __future__ import annotations

import asyncio
import queue
import random
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

import httpx

from portal.answering.writing.chat_stream import (
    ChatStreamReader,
    Malformed,
    Refused,
    data_of,
    joined_surrogates,
    start_of,
)
from portal.answering.writing.prompt import SEARCH_TOOL
from portal.domain.answering import ChatEvent, ChatRequest, Heartbeat, TextDelta
from portal.domain.openai_protocol import (
    DEFAULT_API_BASE,
    RETRIED_STATUSES,
    authorization,
    retry_after_s,
)
from portal.errors import N_, ChatUnavailable, Message
from portal.event_loop import EventLoop
from portal.text.server_errors import MAX_READ_LENGTH, shown_error

DEFAULT_MODEL = "gpt-4o-mini"

# Interval of heartbeats while the endpoint is silent; at each of them the consumer can stop.
HEARTBEAT_S = 0.25
_MAX_ATTEMPTS = 3
_PAUSE_S = 0.2
_REFUSES_TOOLS = frozenset({400, 404, 422, 501})
_MAX_CHARACTERS = 200_000

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": SEARCH_TOOL,
            "description": "Search the documents in use for something else.",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "What to look for."}},
                "required": ["query"],
            },
        },
    }
]

_Item = ChatEvent | ChatUnavailable | None
"""What the event loop hands over: an event, an error, or the end."""


class OpenAIChatModel:
    """A chat model over HTTP. An answer may take `timeout_s`, its first word
    `first_token_timeout_s`; until then, temporary failures are retried. After it, the endpoint may
    be silent for `max_silence_s`, or for as long as before the first word if that is longer."""

    provider = "openai"
    only_quotes = False

    def __init__(
        self,
        *,
        model: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        first_token_timeout_s: float = 2.6,
        max_silence_s: float = 10.0,
        max_tokens: int = 1024,
    ) -> None:
        self._model = model or DEFAULT_MODEL
        self._base = (api_base or DEFAULT_API_BASE).rstrip("/") + "/"
        self._key = (api_key or "").strip()
        self._timeout_s = timeout_s
        self._first_s = min(first_token_timeout_s, timeout_s)
        self._silence_s = max(max_silence_s, self._first_s)
        self._max_tokens = max_tokens
        self._takes_tools = True
        make_client = partial(
            httpx.AsyncClient,
            headers=authorization(self._key),
            timeout=httpx.Timeout(None),
            # Loads the machine's certificates now, because it is too slow during a question.
            verify=httpx.create_ssl_context(),
        )
        self._loop = EventLoop("chat", make_client)

    @property
    def model(self) -> str:
        return self._model

    @property
    def takes_tools(self) -> bool:
        """Return whether to offer tools; false once the endpoint has rejected them."""
        return self._takes_tools

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """Yield events as they arrive, and a Heartbeat in every silence. Raises ChatUnavailable."""
        loop, client = self._loop.running()
        items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        task = asyncio.run_coroutine_threadsafe(self._fill(client, request, items), loop)
        try:
            while True:
                try:
                    item = items.get(timeout=HEARTBEAT_S)
                except queue.Empty:
                    if task.done() and items.empty():
                        raise ChatUnavailable("it was shut down") from None
                    yield Heartbeat()
                    continue
                if item is None:
                    return
                if isinstance(item, ChatUnavailable):
                    raise item
                yield item
        finally:
            # Cancels the request at any point, and with it the endpoint's computation.
            task.cancel()

    def close(self) -> None:
        """Close all requests and connections."""
        self._loop.close()

    async def _fill(
        self, client: httpx.AsyncClient, request: ChatRequest, items: queue.SimpleQueue[_Item]
    ) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._attempts(client, request, items)
        except TimeoutError:
            items.put(_timed_out(self._timeout_s))
        except ChatUnavailable as error:
            items.put(error)
        except Exception as error:  # noqa: BLE001 - the reader would wait for ever
            items.put(
                ChatUnavailable("its endpoint failed (%(error)s)", error=type(error).__name__)
            )
        else:
            items.put(None)

    async def _attempts(
        self, client: httpx.AsyncClient, request: ChatRequest, items: queue.SimpleQueue[_Item]
    ) -> None:
        """Send the request; retry temporary failures until something arrives or time is up."""
        deadline = time.monotonic() + self._first_s
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            try:
                await self._attempt(client, request, items, deadline)
            except _WorthRetrying as error:
                pause_s = (error.pause_s or _PAUSE_S * attempt) * random.uniform(1, 1.25)  # noqa: S311
                if attempt == _MAX_ATTEMPTS or time.monotonic() + pause_s >= deadline:
                    raise
                await asyncio.sleep(pause_s)
            else:
                return

    async def _attempt(
        self,
        client: httpx.AsyncClient,
        request: ChatRequest,
        items: queue.SimpleQueue[_Item],
        deadline: float,
    ) -> None:
        """Send one request. Raises _WorthRetrying only before anything was handed over."""
        has_begun, length = False, 0
        events = self._events(client, request)
        try:
            async with aclosing(events), asyncio.timeout(deadline - time.monotonic()) as patience:
                async for event in events:
                    # Any event is a sign of life, reasoning too.
                    patience.reschedule(asyncio.get_running_loop().time() + self._silence_s)
                    has_begun = True
                    length += len(event.text) if isinstance(event, TextDelta) else 0
                    if length > _MAX_CHARACTERS:
                        raise ChatUnavailable("its endpoint does not stop generating")
                    items.put(event)
            if not has_begun:
                raise ChatUnavailable("its endpoint wrote nothing")
        except TimeoutError as error:
            if has_begun:
                raise ChatUnavailable(
                    "its endpoint fell silent for %(seconds)s seconds in the middle of the answer",
                    seconds=f"{self._silence_s:g}",
                ) from error
            raise _timed_out(self._first_s) from error
        except _WorthRetrying as error:
            if has_begun:
                raise ChatUnavailable(**error.params) from error
            raise

    async def _events(
        self, client: httpx.AsyncClient, request: ChatRequest
    ) -> AsyncGenerator[ChatEvent, None]:
        reader = ChatStreamReader()
        with self._translate_errors(request):
            async with client.stream(
                "POST", f"{self._base}chat/completions", json=self._body(request)
            ) as response:
                await self._require_success(response, request)
                async for data in data_of(response):
                    for event in reader.read(data):
                        yield event
                    if reader.is_done:
                        break
        if not reader.is_finished:
            raise _WorthRetrying(N_("its endpoint dropped the connection mid-answer"))
        for call in reader.calls():
            yield call

    @contextmanager
    def _translate_errors(self, request: ChatRequest) -> Iterator[None]:
        """Translate failures of the endpoint to ChatUnavailable, without request or response."""
        try:
            yield
        except Malformed as error:
            raise ChatUnavailable(
                "what its endpoint sends is not what OpenAI's protocol says. Check that its "
                "address leads to the API, such as https://host/v1"
            ) from error
        except Refused as error:
            raise ChatUnavailable(
                "its endpoint returned an error: %(said)s", said=self._said(str(error), request)
            ) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ChatUnavailable("its address must begin with http:// or https://") from error
        except httpx.HTTPError as error:
            raise _WorthRetrying(
                N_(
                    "its endpoint cannot be reached or dropped the connection (%(error)s). Check "
                    "its address",
                    error=type(error).__name__,
                )
            ) from error

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        turns = [{"role": turn.role, "content": turn.content} for turn in request.turns]
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": request.system},
                *turns,
                *request.tool_turns,
            ],
            "stream": True,
            "max_tokens": self._max_tokens,
        }
        if request.can_search and self._takes_tools:
            body["tools"] = _TOOLS
        return body

    async def _require_success(self, response: httpx.Response, request: ChatRequest) -> None:
        status = response.status_code
        if response.is_success:
            return
        if status in RETRIED_STATUSES:
            raise _WorthRetrying(
                N_("its endpoint answered %(status)s", status=status),
                pause_s=retry_after_s(response.headers.get("retry-after", "")),
            )
        start = (await start_of(response, MAX_READ_LENGTH)).decode(errors="replace")
        said = self._said(start, request)
        if status in _REFUSES_TOOLS and request.can_search:
            # If it is rejected without tools as well, they were not the reason: offer them again.
            self._takes_tools = not self._takes_tools
            if not self._takes_tools:
                raise _WorthRetrying(
                    N_("its endpoint answered %(status)s", status=status), pause_s=0.001
                )
        if response.is_redirect:
            raise ChatUnavailable(
                "its endpoint redirects, and the key is not sent after it. Set "
                "its address to the one that answers"
            )
        raise ChatUnavailable(
            "its endpoint answered %(status)s: %(said)s. Check its model, key and address",
            status=status,
            said=said,
        )

    def _said(self, text: str, request: ChatRequest) -> str:
        """Return the beginning of the endpoint's response, without the key and the request."""
        # Some endpoints repeat both.
        sent = [request.system, request.question, *(turn.content for turn in request.turns)]
        sent += [str(turn.get("content", "")) for turn in request.tool_turns]
        return shown_error(joined_surrogates(text), sent, self._key)


class _WorthRetrying(ChatUnavailable):
    """A failure that may be temporary."""

    def __init__(self, reason: Message, *, pause_s: float = 0.0) -> None:
        super().__init__(reason=reason)
        self.pause_s = pause_s


def _timed_out(seconds: float) -> ChatUnavailable:
    return ChatUnavailable(
        "its endpoint did not answer within %(seconds)s seconds", seconds=f"{seconds:g}"
    )

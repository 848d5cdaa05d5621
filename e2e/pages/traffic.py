"""The requests of a window: how many, how large, and how much of that is scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page


@dataclass
class Taken:
    """Requests that reached the server, their bytes on the wire, and the bytes of scripts."""

    requests: list[str] = field(default_factory=list)
    size_bytes: int = 0
    script_bytes: int = 0


class Traffic:
    """Counts what one window requests from the server; responses from its cache do not count."""

    def __init__(self, page: Page) -> None:
        self._taken = Taken()
        self._sent: dict[str, tuple[str, str]] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._note_request)
        session.on("Network.requestServedFromCache", lambda seen: self._forget(seen["requestId"]))
        session.on("Network.responseReceived", self._note_response)
        session.on("Network.loadingFinished", self._note_end)
        session.send("Network.enable")

    def take(self) -> Taken:
        """Return what was requested since the last call."""
        taken, self._taken = self._taken, Taken()
        return taken

    def _note_request(self, seen: dict[str, Any]) -> None:
        self._sent[seen["requestId"]] = seen["request"]["url"], seen.get("type", "")

    def _note_response(self, seen: dict[str, Any]) -> None:
        if seen["response"].get("fromDiskCache"):
            self._forget(seen["requestId"])

    def _note_end(self, seen: dict[str, Any]) -> None:
        address, kind = self._sent.pop(seen["requestId"], ("", ""))
        if not address.startswith("http"):
            return
        self._taken.requests.append(address)
        self._taken.size_bytes += int(seen["encodedDataLength"])
        self._taken.script_bytes += int(seen["encodedDataLength"]) if kind == "Script" else 0

    def _forget(self, request: str) -> None:
        self._sent.pop(request, None)

"""People at work: they search, ask, switch, change, delete, restore and upload, and remember what
was acknowledged."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from portal.services import Services
from portal.services.people import accounts, sessions
from portal.text.titles import MAX_TAGS
from tests.conftest import PASSWORD

_MAX_RETRIES = 400
_AGAIN_S = 0.1
# 502 is the proxy's, for a process that died with the request.
_BUSY = {409, 502, 503}


@dataclass(frozen=True)
class Refusal:
    """One attempt at a request that was not acknowledged: `request` is the person's n-th."""

    at: float
    request: int
    what: str
    reason: str


class Person(threading.Thread):
    """Does one thing after another, repeats what was not acknowledged, and remembers the rest."""

    def __init__(
        self,
        services: Services,
        address: str,
        number: int,
        rng: random.Random,
        *,
        max_pause_s: float = 0.0,
    ) -> None:
        super().__init__(daemon=True)
        user = accounts.create_user(services, name=f"person{number}", password=PASSWORD)
        token = sessions.token_for(services, user, ttl_s=4 * 3600)
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=address, headers=headers, timeout=30)
        self._name, self._rng, self._max_pause_s = f"person{number}", rng, max_pause_s
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.requests = self.done = 0
        self.refusals: list[Refusal] = []
        self.words: dict[str, str] = {}
        self._ready: list[str] = []
        self.deleted: set[str] = set()
        self.switched_off: set[str] = set()
        self.tags: dict[str, set[str]] = {}
        self.answers: list[tuple[str, str, str]] = []

    def run(self) -> None:
        try:
            self._upload()
            while not self.stopping.wait(self._rng.uniform(0, self._max_pause_s)):
                self._rng.choice(
                    [self._search, self._search, self._toggle, self._delete, self._restore,
                     self._tag, self._ask, self._upload]
                )()  # fmt: skip
                self.done += 1
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request until it is answered, as clients do that were told to come back."""
        self.requests += 1
        for _ in range(_MAX_RETRIES):
            answer = self._send(method, path, **request)
            if answer is not None and answer.status_code not in _BUSY:
                assert answer.status_code < 500, (method, path, answer.text)
                return answer
        raise AssertionError(f"{method} {path} was not answered")

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response | None:
        """Send a request once. If it is not answered, or the portal is busy, note that, and wait
        as long as it says."""
        answer, again_s = None, _AGAIN_S
        try:
            answer = self._client.request(method, path, **request)
            reason = f"{answer.status_code} {_code(answer)}"
            again_s = float(answer.headers.get("Retry-After", _AGAIN_S))
        except httpx.TransportError as error:
            reason = type(error).__name__
        if answer is None or answer.status_code in _BUSY:
            refusal = Refusal(time.monotonic(), self.requests, f"{method} {path}", reason)
            self.refusals.append(refusal)
            time.sleep(again_s)
        return answer

    def _upload(self) -> None:
        word = f"lantern{self._name}{len(self.words)}"
        answer = self.call(
            "POST",
            "/api/knowledge/documents",
            files={"file": (f"{word}.txt", f"The keeper of {word} lives in Brume.".encode())},
            data={"visibility": "private"},
            headers={"Idempotency-Key": word},
        )
        assert answer.status_code == 202, answer.text
        self.words[answer.json()["documents"][0]["id"]] = word

    def _one(self) -> str | None:
        """Return a document that is ready, and not in the trash."""
        for document_id in self.words:
            if document_id not in self._ready and document_id not in self.deleted:
                found = self.call("GET", f"/api/knowledge/documents/{document_id}")
                if found.json()["status"] == "ready":
                    self._ready.append(document_id)
        alive = [one for one in self._ready if one not in self.deleted]
        return self._rng.choice(alive) if alive else None

    def _search(self) -> None:
        if not (self._ready or self._one()):
            return
        one = self._rng.choice(self._ready)
        mode = self._rng.choice(["hybrid", "keyword"])
        answer = self.call(
            "POST", "/api/knowledge/search", json={"query": self.words[one], "mode": mode}
        )
        assert answer.status_code == 200, answer.text
        found = [hit["document_id"] for hit in answer.json()["results"]]
        is_there = one not in self.deleted and one not in self.switched_off
        assert (one in found) == is_there, (mode, answer.json())
        assert set(found) <= self.words.keys() - self.deleted - self.switched_off

    def _toggle(self) -> None:
        if one := self._one():
            enabled = one in self.switched_off
            answer = self.call(
                "PUT", f"/api/user/document-defaults/{one}", json={"enabled": enabled}
            )
            assert answer.is_success, answer.text
            (self.switched_off.discard if enabled else self.switched_off.add)(one)

    def _delete(self) -> None:
        if len(self._ready) > 2 and (one := self._one()):
            self.call("DELETE", f"/api/knowledge/documents/{one}")
            self.deleted.add(one)

    def _restore(self) -> None:
        if self.deleted:
            one = self._rng.choice(sorted(self.deleted))
            path, before = f"/api/knowledge/documents/{one}", len(self.refusals)
            answer = self.call("POST", f"{path}/restore")
            if answer.status_code == 404 and len(self.refusals) > before:
                # Done by the attempt before, whose answer was lost.
                answer = self.call("GET", path)
            assert answer.is_success, answer.text
            self.deleted.discard(one)

    def _tag(self) -> None:
        """Change many at once."""
        alive = [
            document_id
            for document_id in self.words
            if document_id not in self.deleted and len(self.tags.get(document_id, ())) < MAX_TAGS
        ]
        if not alive:
            return
        tag = f"tag{self.done}"
        body = {"action": "add_tag", "ids": alive, "tag": tag}
        answer = self.call("POST", "/api/knowledge/bulk", json=body)
        assert answer.is_success, answer.text
        for one in alive:
            self.tags.setdefault(one, set()).add(tag)

    def _ask(self) -> None:
        """Ask once: what was not acknowledged may be there or not, but is never half an answer."""
        talk = self.call("POST", "/api/conversations", json={}).json()["id"]
        self.requests += 1
        body = {"content": "Who lives in Brume?"}
        answer = self._send("POST", f"/api/conversations/{talk}/messages", json=body)
        if answer is not None and answer.is_success:
            self.answers.append((talk, answer.json()["id"], answer.json()["content"]))

    def check(self) -> None:
        """Compare all that was acknowledged with what is there."""
        for document_id, word in self.words.items():
            answer = self.call("GET", f"/api/knowledge/documents/{document_id}")
            if document_id in self.deleted:
                assert answer.status_code == 404 or answer.json().get("deleted_at"), word
                continue
            assert answer.json()["status"] == "ready", answer.text
            assert self.tags.get(document_id, set()) <= set(answer.json()["tags"]), word
        off = {switch["document_id"] for switch in self._switches() if not switch["enabled"]}
        assert off & self.words.keys() == self.switched_off - self.deleted
        for talk, message, content in self.answers:
            messages = self.call("GET", f"/api/conversations/{talk}").json()["messages"]
            assert {one["id"]: one["content"] for one in messages}[message] == content

    def _switches(self) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            chosen = {"cursor": cursor} if cursor else {}
            page = self.call("GET", "/api/user/document-defaults", params=chosen).json()
            yield from page["documents"]
            cursor = page["next_cursor"]
            if cursor is None:
                return


def _code(answer: httpx.Response) -> str:
    """Return the portal's name of an error, or "" for what the proxy answers by itself."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(answer.json()["error"]["code"])
    return ""


def found(client: httpx.Client, query: str, mode: str = "hybrid") -> list[str]:
    """Return the documents that a search finds."""
    answer = client.post("/api/knowledge/search", json={"query": query, "mode": mode})
    assert answer.status_code == 200, answer.text
    return [hit["document_id"] for hit in answer.json()["results"]]

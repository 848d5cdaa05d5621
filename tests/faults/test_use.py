"""People search, ask, switch, change, delete and upload, while processes are killed."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from portal.services.people import accounts, sessions
from portal.text.titles import MAX_TAGS
from tests.conftest import PASSWORD
from tests.faults.conftest import Tally
from tests.faults.world import World, wait

_PEOPLE = 2
_READY_WITHIN_S = 180.0
_MAX_RETRIES = 400
_AGAIN_S = 0.1
_BUSY = {409, 503}


class Person(threading.Thread):
    """Does one thing after another, repeats what was not acknowledged, and remembers the rest."""

    def __init__(self, world: World, number: int, rng: random.Random) -> None:
        super().__init__(daemon=True)
        user = accounts.create_user(world.services, name=f"person{number}", password=PASSWORD)
        token = sessions.token_for(world.services, user, ttl_s=4 * 3600)
        self._client = httpx.Client(
            base_url=world.client.base_url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
        )
        self._name, self._rng = f"person{number}", rng
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.retries = self.done = 0
        self.words: dict[str, str] = {}
        self._ready: list[str] = []
        self.deleted: set[str] = set()
        self.switched_off: set[str] = set()
        self.tags: dict[str, set[str]] = {}
        self.answers: list[tuple[str, str, str]] = []

    def run(self) -> None:
        try:
            self._upload()
            while not self.stopping.is_set():
                self._rng.choice(
                    [self._search, self._search, self._toggle, self._delete, self._restore,
                     self._tag, self._ask, self._upload]
                )()  # fmt: skip
                self.done += 1
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request until it is answered, as clients do that were told to come back."""
        for _ in range(_MAX_RETRIES):
            with contextlib.suppress(httpx.TransportError):
                answer = self._client.request(method, path, **request)
                if answer.status_code not in _BUSY:
                    assert answer.status_code < 500, (method, path, answer.text)
                    return answer
            self.retries += 1
            time.sleep(_AGAIN_S)
        raise AssertionError(f"{method} {path} was not answered")

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
        for one in self.words:
            if one not in self._ready and one not in self.deleted:
                found = self.call("GET", f"/api/knowledge/documents/{one}")
                if found.json()["status"] == "ready":
                    self._ready.append(one)
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
            path, before = f"/api/knowledge/documents/{one}", self.retries
            answer = self.call("POST", f"{path}/restore")
            if answer.status_code == 404 and self.retries > before:
                # Done by the attempt before, whose answer was lost.
                answer = self.call("GET", path)
            assert answer.is_success, answer.text
            self.deleted.discard(one)

    def _tag(self) -> None:
        """Change many at once."""
        alive = [
            one
            for one in self.words
            if one not in self.deleted and len(self.tags.get(one, ())) < MAX_TAGS
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
        with contextlib.suppress(httpx.TransportError):
            answer = self._client.post(
                f"/api/conversations/{talk}/messages", json={"content": "Who lives in Brume?"}
            )
            if answer.is_success:
                self.answers.append((talk, answer.json()["id"], answer.json()["content"]))

    def check(self) -> None:
        """Compare all that was acknowledged with what is there."""
        for one, word in self.words.items():
            answer = self.call("GET", f"/api/knowledge/documents/{one}")
            if one in self.deleted:
                assert answer.status_code == 404 or answer.json().get("deleted_at"), word
                continue
            assert answer.json()["status"] == "ready", answer.text
            assert self.tags.get(one, set()) <= set(answer.json()["tags"]), word
        listed = self.call("GET", "/api/user/document-defaults").json()
        off = {one["document_id"] for one in _items(listed) if not one["enabled"]}
        assert off & self.words.keys() == self.switched_off - self.deleted
        for talk, message, content in self.answers:
            messages = self.call("GET", f"/api/conversations/{talk}").json()["messages"]
            assert {one["id"]: one["content"] for one in messages}[message] == content


def _items(body: Any) -> list[dict[str, Any]]:
    return body if isinstance(body, list) else body.get("documents") or body.get("items") or []


@pytest.fixture
def world(run_dir: Path) -> Iterator[World]:
    world = World(run_dir / "used", workers=1)
    yield world
    world.stop()


@pytest.mark.slow
def test_what_users_did_while_processes_were_killed_is_there_and_searches_were_right(
    world: World, rng: random.Random, counts: dict[str, int], tally: Tally
) -> None:
    kinds = [("worker", "web", "database")[number % 3] for number in range(counts["use"])]
    rng.shuffle(kinds)
    people = [Person(world, number, random.Random(rng.random())) for number in range(_PEOPLE)]
    for person in people:
        person.start()
    try:
        wait(lambda: all(one.done > 3 for one in people), _READY_WITHIN_S, "nothing is done")
        for kind in kinds:
            time.sleep(rng.uniform(0.2, 1.5))  # Somewhere in the middle of what they do.
            began = time.monotonic()
            {"worker": lambda: world.kill_worker(0), "web": world.kill_web,
             "database": world.kill_database}[kind]()  # fmt: skip
            wait(world.is_ready, _READY_WITHIN_S, f"not ready after a kill of {kind}")
            tally.note(f"{kind} killed while people work", recovery_s=time.monotonic() - began)
            assert [one.failure for one in people if one.failure] == []
        before = [one.done for one in people]
        wait(
            lambda: all(one.done > count + 5 for one, count in zip(people, before, strict=True)),
            _READY_WITHIN_S,
            "people do not go on",
        )
    finally:
        for person in people:
            person.stopping.set()
        for person in people:
            person.join(_READY_WITHIN_S)
    assert [one.failure for one in people if one.failure] == []
    wait(lambda: world.unfinished() == 0, _READY_WITHIN_S, "a document is not finished")
    for person in people:
        person.check()
    print(f"{sum(p.done for p in people)} actions, {sum(p.retries for p in people)} retries")  # noqa: T201

"""Actions of a simulated user, for locust: sign in, search as typed, ask, toggle, upload, read.

Started by `bench.load`, which sets by the environment who signs in and how many users there are in
each stage. Every request is written to a file, from which the tables are made.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from locust import FastHttpUser, LoadTestShape, events, task
from urllib3 import encode_multipart_formdata

_PLAN: dict[str, Any] = json.loads(Path(os.environ["LOAD_PLAN"]).read_text(encoding="utf-8"))
_RECORD = Path(os.environ["LOAD_RECORD"]).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115
_NUMBERS = count()
_REFUSALS = {429, 503}
_SIGN_IN_AGAIN_S = 2.0
_TIMEOUT_S = 60
_AT_ONCE = 100


class Stages(LoadTestShape):
    """The stages of the plan, one after the other."""

    now = ""

    def tick(self) -> tuple[int, float] | None:
        run_time = self.get_run_time()
        for name, seconds, users in _PLAN["stages"]:
            if run_time < seconds:
                if Stages.now != name:
                    Stages.now = name
                    _write({"stage": name})
                return users, _PLAN["arrivals_a_second"] if name == "arrival" else _AT_ONCE
            run_time -= seconds
        return None


@events.request.add_listener
def _record(
    name: str, response_time: float, exception: BaseException | None, response: Any, **_: Any
) -> None:
    status = getattr(response, "status_code", 0)
    is_refused = status in _REFUSALS and "Retry-After" in response.headers
    outcome = "refused" if is_refused else "failed" if exception or status >= 400 else "ok"
    event = {"name": name, "ms": round(response_time, 1), "outcome": outcome, "status": status}
    _write(event | ({"error": str(exception)} if exception else {}))


def _write(event: dict[str, Any]) -> None:
    _RECORD.write(json.dumps({"at": time.time(), "in": Stages.now, **event}) + "\n")


class Person(FastHttpUser):
    """A user who works with the portal; in the stage `overload`, without pauses."""

    # With `HttpUser` the users of an overload take as much of a core as the portal.
    network_timeout = connection_timeout = _TIMEOUT_S

    def wait_time(self) -> float:
        return 0.0 if Stages.now == "overload" else random.uniform(*_PLAN["pause_s"])

    def on_start(self) -> None:
        self._name = f"{_PLAN['names']}{next(_NUMBERS) % _PLAN['accounts'] + 1}"
        self.seen: list[str] = []
        self._sign_in()

    def _sign_in(self) -> None:
        body = {"username": self._name, "password": _PLAN["password"]}
        while True:
            answer = self.client.post("/api/auth/token", json=body, name="sign in")
            if answer.ok:
                break
            time.sleep(_SIGN_IN_AGAIN_S)
        token = answer.json()
        self.client.client.default_headers["Authorization"] = f"Bearer {token['access_token']}"
        self._signs_in_at = time.monotonic() + token["expires_in"] - _TIMEOUT_S

    def wait(self) -> None:
        super().wait()
        if time.monotonic() >= self._signs_in_at:
            self._sign_in()

    @task(5)
    def search_as_typed(self) -> None:
        words = random.choice(_PLAN["questions"])
        self.client.get("/search", name="open a page")
        # As the page sends them: the text so far, after each pause of a quarter of a second.
        before = "/search"
        for typed in (words[: len(words) // 3], words[: 2 * len(words) // 3], words):
            if not typed.strip():
                continue
            headers = {
                "HX-Request": "true",
                "HX-Target": "search-results",
                "HX-Current-URL": f"{self.host}{before}",
            }
            before = f"/search?{urlencode({'q': typed})}"
            self.client.get(before, name="search", headers=headers)
        answer = self.client.post("/api/knowledge/search", json={"query": words}, name="search")
        if answer.ok:
            self.seen = [hit["document_id"] for hit in answer.json()["results"]] or self.seen

    @task(4)
    def read(self) -> None:
        if self.seen:
            self.client.get(f"/documents/{random.choice(self.seen)}", name="read a document")
        else:
            self.client.get("/documents", name="open a page")

    @task(1)
    def ask(self) -> None:
        conversation = self.client.post("/api/conversations", json={}, name="new conversation")
        if not conversation.ok:
            return
        with self._timed("answer, to its end"):
            answer = self.client.post(
                f"/api/conversations/{conversation.json()['id']}/messages",
                json={"content": random.choice(_PLAN["questions"]), "stream": True},
                name="answer, to its start",
                stream=True,
            )
            text = answer.content or b""
            if answer.ok and b"event: done" not in text:
                failure = text.partition(b"event: error")[2][:300]
                raise RuntimeError(f"the answer did not end: {failure!r}")

    @task(1)
    def toggle(self) -> None:
        if self.seen:
            path = f"/api/user/document-defaults/{random.choice(self.seen)}"
            body = {"enabled": random.random() < 0.5}
            self.client.put(path, json=body, name="toggle")

    @task(1)
    def upload(self) -> None:
        text = f"{uuid4()}: {random.choice(_PLAN['questions'])}\n" * 20
        files = {"file": (f"{uuid4().hex}.txt", text.encode())}
        body, media_type = encode_multipart_formdata(files)
        headers = {"Content-Type": media_type}
        self.client.post("/api/knowledge/documents", data=body, headers=headers, name="upload")

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        failure: Exception | None = None
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is counted, and the person goes on
            failure = error
        events.request.fire(
            request_type="SSE", name=name, response_time=1000 * (time.perf_counter() - began),
            response_length=0, exception=failure, response=None, context={},
        )  # fmt: skip

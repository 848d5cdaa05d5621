"""Lists, the tree, changes of many documents and searches, with and without folders."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from bench.corpus import Corpus, Question
from bench.corpus.profiles import RESULTS
from bench.folders.filed import CHANGED, CHANGED_DOMAIN, FOLDERS, GROUPS, Filed, filed_copies
from bench.over_http import checked
from bench.timing import Contender, Samples, alternate, repeating
from portal import create_app
from portal.services.people import accounts, sessions

_TOKEN_TTL_S = 7200
_LIST, _BULK = "/api/knowledge/documents", "/api/knowledge/bulk"
_SEARCH = "search"
# The addresses to read, by their name in the table.
_READS = {
    "list, page": "/documents",
    "list, API": f"{_LIST}?limit=50",
    "by title": f"{_LIST}?limit=50&sort=title",
    "by owner": f"{_LIST}?limit=50&sort=owner",
    "title contains": f"{_LIST}?limit=50&q=17",
    "panel of a conversation, page": "/chat/<conversation>/documents",
}
_READS_OF_FOLDERS = {
    "list of a folder and below, page": "/documents?folder=<folder>",
    "list of a folder and below, API": f"{_LIST}?limit=50&folder_id=<folder>",
    "tree, API": "/api/folders?parent_id=<folder>",
    "all folders to choose from, page": "/folders/new",
}
# Changes of CHANGED documents; each is undone afterwards.
_CHANGES: dict[str, dict[str, Any]] = {
    "move": {"action": "move", "folder_id": "<folder>"},
    "tag": {"action": "add_tag", "tag": "bench"},
    "domain": {"action": "domain", "domain": "other"},
    "visibility": {"action": "visibility", "visibility": "private"},
    "switch": {"action": "switch", "enabled": False},
    "delete": {"action": "delete"},
}


class Client:
    """A client of an application without a socket, signed in as one user."""

    def __init__(self, filed: Filed, name: str) -> None:
        services = filed.corpus.services
        user = accounts.find_user(services, name)
        token = sessions.token_for(services, user, ttl_s=_TOKEN_TTL_S)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._client: FlaskClient = create_app(services).test_client()
        self._folder = str(filed.folder_id or "")
        self._conversation = ""
        self._conversation = self.send("/api/conversations", {})["id"]

    def read(self, path: str) -> bytes:
        path = path.replace("<folder>", self._folder)
        path = path.replace("<conversation>", self._conversation)
        answer = self._client.get(path, headers=self._headers)
        return checked(path, answer.status_code, answer.get_data())

    def send(self, path: str, body: dict[str, Any]) -> Any:
        sent = {
            name: self._folder if value == "<folder>" else value for name, value in body.items()
        }
        answer = self._client.post(path, json=sent, headers=self._headers)
        if not 200 <= answer.status_code < 300:
            raise RuntimeError(f"{path} answered {answer.status_code}: {answer.get_data()[:200]!r}")
        return answer.json

    def search(self, question: Question) -> Any:
        return self.send("/api/knowledge/search", {"query": question.text, "top_n": RESULTS})


def measure_folders(
    corpus: Corpus, data_dir: Path, *, seconds: float, log: Callable[[str], None]
) -> dict[str, Any]:
    """Return the times of both copies of the corpus, ready for JSON."""
    log("copies")
    with filed_copies(corpus, data_dir) as copies:
        flat, filed = ((Client(one, "owner"), Client(one, "files 100 %")) for one in copies)
        log("reads")
        reads = _measure_reads(corpus, flat, filed, Client(copies[1], "member 1"), seconds)
        rows = []
        for name, body in _CHANGES.items():
            log(f"{name} of {CHANGED} documents")
            sides = {"filed": filed} if name == "move" else {"flat": flat, "filed": filed}
            rows.append(
                {"change": name} | {at: change_and_undo(one[0], body) for at, one in sides.items()}
            )
        log("searches during moves")
        meanwhile = _measure_meanwhile(corpus, filed, seconds)
    return {
        "documents": len(corpus.document_ids),
        "folders": FOLDERS,
        "groups": GROUPS,
        "changed": CHANGED,
        "reads": reads,
        "changes": rows,
        "meanwhile": meanwhile,
    }


def _measure_reads(
    corpus: Corpus,
    flat: tuple[Client, Client],
    filed: tuple[Client, Client],
    member: Client,
    seconds: float,
) -> list[dict[str, Any]]:
    """Time reads of both copies in turn, by a user who owns nothing."""
    contenders = {}
    for name, path in _READS.items():
        for at, (_, reader) in (("flat", flat), ("filed", filed)):
            contenders[name, at] = Contender(_ignoring(partial(reader.read, path)))
    for name, path in _READS_OF_FOLDERS.items():
        contenders[name, "filed"] = Contender(_ignoring(partial(filed[1].read, path)))
    for at, (_, reader) in (("flat", flat), ("filed", filed)):
        contenders[_SEARCH, at] = Contender(reader.search)
    contenders["list, page, member of groups", "filed"] = Contender(
        _ignoring(partial(member.read, "/documents"))
    )
    contenders["search, member of groups", "filed"] = Contender(member.search)
    samples = alternate(contenders, corpus.questions, seconds=seconds)
    return [
        {"read": name, **{at: taken.as_dict() for (of, at), taken in samples.items() if of == name}}
        for name in dict.fromkeys(name for name, _ in samples)
    ]


def _ignoring(read: Callable[[], object]) -> Callable[[Question], object]:
    return lambda _question: read()


def change_and_undo(
    client: Client, body: dict[str, Any], *, domain: str = CHANGED_DOMAIN, count: int = CHANGED
) -> dict[str, float]:
    """Time one change of a domain's `count` documents and its undo."""
    started = time.perf_counter()
    done = client.send(_BULK, body | {"matching": {"domain": domain}})
    seconds = time.perf_counter() - started
    if done["changed_count"] != count:
        raise RuntimeError(f"{body}: {done}")
    started = time.perf_counter()
    undone = client.send(f"{_BULK}/{done['change_id']}/undo", {})
    if undone["changed_count"] != count:
        raise RuntimeError(f"undo of {body}: {undone}")
    return {"s": round(seconds, 2), "undo_s": round(time.perf_counter() - started, 2)}


def _measure_meanwhile(
    corpus: Corpus, filed: tuple[Client, Client], seconds: float
) -> dict[str, Any]:
    """Time searches alone, and while many documents move and move back without a pause."""
    owner, reader = filed
    questions = cycle(corpus.questions)
    alone = _search_for(reader, questions, seconds)
    moves: list[float] = []
    with repeating(lambda: moves.extend(change_and_undo(owner, _CHANGES["move"]).values())):
        meanwhile = _search_for(reader, questions, 2 * seconds)
    return {
        "alone": alone.as_dict(),
        "meanwhile": meanwhile.as_dict(),
        "moves": len(moves),
        "move_s": round(sum(moves) / len(moves), 2),
    }


def _search_for(client: Client, questions: Iterator[Question], seconds: float) -> Samples:
    taken, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        question, started = next(questions), time.perf_counter()
        client.search(question)
        taken.append(time.perf_counter() - started)
    return Samples([taken])

"""A user's results and scores reveal nothing about other users' private documents.

The attacks go over HTTP, as an ordinary user: the attacker uploads notes, searches and compares
responses. `--tries 10000` runs the first attack in full.
"""

from __future__ import annotations

import io
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.people import User
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from tests.conftest import Portal
from tests.factories.uploads import needs_bm25

pytestmark = needs_bm25

SEARCH = "/api/knowledge/search"
# In standard deviations from one half; one run in 30,000 exceeds it by chance.
MAX_DEVIATION = 4.0
# Words guessed at with one query.
PAIRS = 10
WORDS_A_ROUND = {"few": 20, "many": 100}
# Fields that differ between two responses to the same query.
VOLATILE = {"milliseconds", "request_id", "duration_ms", "rebuilt_at", "meta", "took_ms"}


@dataclass
class World:
    """A portal with shared notes, an attacker and a victim. Both are ordinary users."""

    portal: Portal
    client: FlaskClient
    attacker: User
    victim: User

    @property
    def services(self) -> Services:
        return self.portal.services

    def upload(
        self, notes: dict[str, str], *, visibility: str = "private", **headers: str
    ) -> list[Any]:
        """Upload the attacker's notes and index them."""
        answer = self.client.post(
            "/api/knowledge/documents",
            headers=self.portal.headers(self.attacker) | headers,
            data={
                "visibility": visibility,
                "file": [(io.BytesIO(text.encode()), name) for name, text in notes.items()],
            },
        )
        assert answer.status_code == 202, answer.json
        for document in answer.json["documents"]:
            if document["job_id"]:
                indexing.index_document(self.services, document["job_id"])
        return list(answer.json["documents"])

    def hide(self, content: str, *, name: str = "diary.txt") -> DocumentSummary:
        """Store a private file of the victim."""
        return self.portal.add(content, name=name, owner=self.victim, visibility=Visibility.PRIVATE)

    def erase(self, document: DocumentSummary) -> None:
        library.delete_document(self.services, self.victim, document.id)
        library.purge_document(self.services, self.victim, document.id)

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.client.post(path, headers=self.portal.headers(self.attacker), json=body)
        assert answer.status_code == 200, (path, answer.json)
        return answer.json

    def look(self, path: str, **query: Any) -> Any:
        answer = self.client.get(
            path, headers=self.portal.headers(self.attacker), query_string=query
        )
        assert answer.status_code == 200, (path, answer.json)
        return answer.json


@pytest.fixture(params=["pg_textsearch", "tsvector"])
def any_world(make_services: Callable[..., Services], request: pytest.FixtureRequest) -> World:
    return build(make_services(search={"keyword_backend": request.param}))


@pytest.fixture
def world(services: Services) -> World:
    return build(services)


def build(services: Services) -> World:
    portal = Portal.of(services)
    app = create_app(services)
    app.testing = True
    rng = random.Random(3)
    common = [
        "budget",
        "office",
        "window",
        "river",
        "travel",
        "contract",
        "meeting",
        "年假",
        "报销",
    ]
    for number in range(12):
        portal.add(" ".join(rng.choices(common, k=20)), name=f"shared{number}.txt")
    return World(portal, app.test_client(), portal.user("mallory"), portal.user("victim"))


def scrubbed(answer: Any) -> Any:
    """Return a response without the fields that change from one call to the next."""
    if isinstance(answer, dict):
        return {key: scrubbed(value) for key, value in answer.items() if key not in VOLATILE}
    return [scrubbed(one) for one in answer] if isinstance(answer, list) else answer


# --- a guess and a random word --------------------------------------------------------------------


def words(count: int, *, seed: int) -> list[str]:
    """Return words that occur in no document yet, none similar to another."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprtvz" for b in "aiou"]
    return ["".join(rng.sample(syllables, 5)) for _ in range(count)]


@pytest.mark.timeout(1800)
def test_guesses_at_hidden_words_are_right_by_chance(
    world: World, request: pytest.FixtureRequest
) -> None:
    """In each try the victim's private file contains a word or not, by the toss of a coin. The
    attacker has a note with that word and one with a random word, searches for both, and guesses
    that the word is hidden if its note scores lower than usual.

    If nothing leaks, the number of right guesses is binomial with p = 1/2: its distance from the
    mean in standard deviations must stay small, for each value that the attacker sees.
    """
    tries = request.config.getoption("--tries")
    count = WORDS_A_ROUND["few" if tries < 1000 else "many"]
    guesses, random_words = words(count, seed=1), words(count, seed=2)
    world.upload({f"{word}.txt": f"A note on {word} to keep" for word in guesses})
    world.upload({f"{word}.txt": f"A note on {word} to keep" for word in random_words})
    rng = random.Random(4)
    seen: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    rounds = math.ceil(tries / count)
    for number in range(rounds):
        hidden = [word for word in guesses if rng.random() < 0.5]
        diary = world.hide(f"Day {number}. " + " ".join(hidden * 3))
        for start in range(0, count, PAIRS):
            pairs = list(zip(guesses, random_words, strict=True))[start : start + PAIRS]
            for (guess, what), value in compare(world, pairs).items():
                seen.setdefault(what, {}).setdefault(guess, []).append((value, guess in hidden))
        world.erase(diary)
    for what, by_word in seen.items():
        right = sum(count_right(pairs, rng) for pairs in by_word.values())
        total = sum(map(len, by_word.values()))
        deviation = (right - total / 2) / math.sqrt(total / 4)
        request.node.add_report_section(
            "call", what, f"{right} of {total} right, {deviation:+.2f} standard deviations"
        )
        assert abs(deviation) < MAX_DEVIATION, (what, right, total)
        # A stronger claim: the attacker's results do not depend on hidden documents at all.
        assert all(len({value for value, _ in pairs}) == 1 for pairs in by_word.values()), what


def compare(world: World, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the numbers that an attacker can read off the responses about each pair of notes."""
    seen: dict[tuple[str, str], float] = {}
    query = " ".join(word for pair in pairs for word in pair)
    for mode in ("keyword", "hybrid"):
        body = {"query": query, "mode": mode, "top_n": 3 * len(pairs)}
        found = world.ask(SEARCH, body | {"explain": mode == "keyword"})
        by_title = {hit["title"]: hit for hit in found["results"]}
        places = [hit["title"] for hit in found["results"]]
        for guess, other in pairs:
            mine, random_one = (by_title.get(title, {}) for title in (guess, other))
            for field in ("score", "text_score", "confidence"):
                seen[guess, f"{mode} {field}"] = mine.get(field, 0) - random_one.get(field, 0)
            order = [title for title in places if title in {guess, other}]
            seen[guess, f"{mode} order"] = order.index(other) if other in order else len(order)
            seen[guess, f"{mode} total"] = found["total_count"]
            seen[guess, f"{mode} suggestion"] = hash(str(found["correction"]))
            if found["explanation"]:
                counts = found["explanation"]["counts"]
                seen[guess, "explained counts"] = sum(counts.values())
    return seen


def count_right(pairs: list[tuple[float, bool]], rng: random.Random) -> int:
    """Count the right guesses: hidden if the value is below the usual one, not hidden if above, the
    toss of a coin if equal."""
    usual = statistics.median(value for value, _ in pairs)
    return sum(
        (value < usual if value != usual else rng.random() < 0.5) == is_hidden
        for value, is_hidden in pairs
    )


# --- every way to ask -----------------------------------------------------------------------------

NOTE = "The quokka sleeps near the river while the office drafts a budget"
BODIES = [
    (SEARCH, {"mode": mode, "fusion": fusion, "explain": True})
    for mode in ("hybrid", "keyword", "vector")
    for fusion in ("weighted", "rrf")
]
FAMILIES = {
    "/v1/search": "query",
    "/v1/answer": "query",
    "/api/semantic_search": "query",
    "/api/v1/search/semantic": "query_text",
    "/api/v1/search/text": "query",
    "/api/v1/search/hybrid": "query_text",
}
QUESTIONS = ("quokka", "quokka river", "quokak", "quokka budget 报销", "wombat river")


def everything_seen(world: World, chunk_id: str, document_id: str) -> dict[str, Any]:
    """Return every response that the attacker can get, without its timing."""
    seen: dict[str, Any] = {}
    for question in QUESTIONS:
        for path, body in BODIES:
            seen[f"{path} {question} {body}"] = world.ask(path, {"query": question, **body})
        for path, field in FAMILIES.items():
            seen[f"{path} {question}"] = world.ask(path, {field: question})
        seen[f"fuzzy {question}"] = world.ask(
            "/api/v1/search/text", {"query": question, "fuzzy": True}
        )
        seen[f"why {question}"] = world.look(
            f"{SEARCH}/why", query=question, document_id=document_id
        )
    seen["similar"] = world.look(f"/api/v1/search/similar/{chunk_id}")
    seen["health"] = world.look("/health/vector_store")
    seen["documents"] = world.look("/api/knowledge/documents")
    return {name: scrubbed(answer) for name, answer in seen.items()}


def test_hidden_documents_affect_no_response(any_world: World) -> None:
    world = any_world
    (mine,) = world.upload({"mine.txt": NOTE})
    hit = world.ask(SEARCH, {"query": "quokka"})["results"][0]
    before = everything_seen(world, hit["chunk_id"], mine["id"])
    hidden = world.hide("quokka wombat quokka " * 5 + "river budget 报销")
    copy = world.hide(NOTE, name="copy.txt")
    others = world.hide("Nothing that anyone looks for, at some length " * 20, name="other.txt")
    assert everything_seen(world, hit["chunk_id"], mine["id"]) == before
    for document in (hidden, copy, others):
        world.erase(document)
    assert everything_seen(world, hit["chunk_id"], mine["id"]) == before


def test_shared_and_own_documents_count(world: World) -> None:
    """Statistics still apply: a word in many visible chunks weighs less."""
    world.upload({"one.txt": "quokka alone here", "other.txt": "wombat alone here"})
    body = {"query": "quokka wombat", "mode": "keyword"}

    def scores() -> dict[str, float]:
        return {hit["title"]: hit["score"] for hit in world.ask(SEARCH, body)["results"]}

    assert scores()["one"] == scores()["other"]
    world.upload({f"more{n}.txt": f"quokka number {n} with other words" for n in range(4)})
    assert scores()["one"] < scores()["other"]
    for n in range(3):
        world.portal.add(f"wombat shared {n} wombat", name=f"wombat{n}.txt")
    assert scores()["one"] != scores()["other"]


@pytest.mark.parametrize("visibility", ["private", "shared"])
def test_hidden_words_do_not_decide_ties_at_the_candidate_limit(
    world: World, visibility: str
) -> None:
    """The attacker fills the keyword leg twice over with chunks that tie: with one more hidden
    occurrence of a word, the index would offer only chunks with the other."""
    job = world.upload({"edge.txt": "edge"}, visibility=visibility)[0]["job_id"]
    for word in ("quokka", "wombat") * 2:
        added = world.client.post(
            f"/api/v1/jobs/{job}/chunks",
            headers=world.portal.headers(world.attacker),
            json={"chunks": [{"content": f"{word} pad"}] * 60},
        )
        assert added.status_code == 201, added.json
    body = {"query": "quokka wombat", "top_k": 100}
    before = scrubbed(world.ask("/api/v1/search/text", body))
    for word in ("quokka", "wombat"):
        hidden = world.hide(f"{word} and more", name=f"{word}.txt")
        assert scrubbed(world.ask("/api/v1/search/text", body)) == before
        world.erase(hidden)


def test_unshared_document_is_not_counted_in_results(
    world: World,
) -> None:
    """Unsharing a document removes its chunks from the shared index in the same transaction."""
    shared = world.portal.add("quokka meeting", name="once.txt", owner=world.victim)
    assert count_shared(world, shared) == 1
    library.change_document(world.services, world.victim, shared.id, visibility=Visibility.PRIVATE)
    assert count_shared(world, shared) == 0
    library.change_document(world.services, world.victim, shared.id, visibility=Visibility.SHARED)
    assert count_shared(world, shared) == 1
    library.delete_document(world.services, world.victim, shared.id)
    assert count_shared(world, shared) == 0


def count_shared(world: World, document: DocumentSummary) -> int:
    with world.services.database.begin() as session:
        query = "SELECT count(*) FROM shared_chunks WHERE document_id = :id"
        return int(session.scalar(text(query), {"id": document.id}) or 0)


# --- suggestions ----------------------------------------------------------------------------------


def suggestion(world: World, question: str) -> Any:
    return world.ask(SEARCH, {"query": question, "mode": "keyword"})["correction"]


def test_hidden_words_do_not_take_the_places_of_visible_suggestions(world: World) -> None:
    world.upload({"mine.txt": "My marblixx collection"})
    before = suggestion(world, "marblinq")
    assert before is not None
    nearer = " ".join(f"{letter}arblinq" for letter in "abcdefghijklnopqrstuvwxyz")
    world.hide(nearer)
    assert suggestion(world, "marblinq") == before


def test_suggestions_are_written_as_visible_chunks_write_them(world: World) -> None:
    world.hide("The márbler was here first")
    world.upload({"mine.txt": "The marbler works"})
    assert "marbler" in str(suggestion(world, "marbleer"))


def test_hidden_chinese_words_do_not_change_a_suggestion(world: World) -> None:
    world.upload({"mine.txt": "年假规定。员工可以申请年假。"})
    before = suggestion(world, "年甲")
    near = "年级年纪年代年初年底年轮年幼年迈年薪年会年报年鉴年景年岁年份年终"
    world.hide("。".join(near[place : place + 2] for place in range(0, len(near), 2)))
    assert suggestion(world, "年甲") == before


# --- the same file, the same key ------------------------------------------------------------------


def test_a_copy_of_a_hidden_file_is_new_to_its_uploader(world: World) -> None:
    world.hide(NOTE, name="copy.txt")
    (mine,) = world.upload({"mine.txt": NOTE}, **{"Idempotency-Key": "a-key"})
    assert mine["is_duplicate"] is False
    (hit,) = [h for h in world.ask(SEARCH, {"query": "quokka"})["results"] if h["title"] == "mine"]
    assert hit.get("duplicate_count", 0) == 0


def test_idempotency_key_of_another_user_is_free(world: World) -> None:
    def upload(user: User, text: str) -> Any:
        return world.client.post(
            "/api/knowledge/documents",
            headers=world.portal.headers(user) | {"Idempotency-Key": "same-key"},
            data={"visibility": "private", "file": (io.BytesIO(text.encode()), "a.txt")},
        )

    assert upload(world.victim, "what the victim sent").status_code == 202
    answer = upload(world.attacker, "what the attacker sent")
    assert answer.status_code == 202
    assert answer.json["documents"][0]["is_duplicate"] is False


# --- constants and counts -------------------------------------------------------------------------


def test_health_counts_private_documents_for_administrators_only(world: World) -> None:
    def counts(user: User | None) -> Any:
        headers = world.portal.headers(user) if user else {}
        return world.client.get("/health/vector_store", headers=headers).json

    before = counts(None)
    world.hide("one more")
    for user in (None, world.attacker):
        seen = counts(user)
        assert seen["counts"] == before["counts"]
        assert seen["keyword_index"]["row_count"] == before["keyword_index"]["row_count"]
    assert counts(world.portal.admin)["counts"]["documents"] == before["counts"]["documents"] + 1

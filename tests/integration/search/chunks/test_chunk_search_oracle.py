"""Filters and jobs narrow the documents that a user searches and never widen them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.documents.chunks import NewChunk
from portal.domain.people import User
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import chunks, library, switches
from tests.conftest import Portal

CHUNKS = 6
STEPS = 24
# Use the vector index for every search, however few chunks are enabled.
NEVER = {"exact_always_chunks": 0, "exact_chunks": 0, "exact_share": 0.0}
KINDS = {"semantic": "query_text", "text": "query", "hybrid": "query_text"}
Metadata = Mapping[str, Any]
FILTERS: tuple[tuple[Any, Callable[[Metadata], bool]], ...] = (
    (None, lambda _: True),
    ({"n": {"$lt": 4}}, lambda m: m["n"] < 4),
    ({"tags": {"$contains": "even"}}, lambda m: "even" in m["tags"]),
    ({"n": {"$nin": [1, 2]}, "of.kind": "b"}, lambda m: m["n"] > 2 and m["of"]["kind"] == "b"),
    (
        {"$or": [{"n": 0}, {"tags": {"$not_contains": "even"}}]},
        lambda m: m["n"] == 0 or "even" not in m["tags"],
    ),
    ({"n": "1"}, lambda _: False),
)


def metadata(n: int) -> dict[str, Any]:
    return {"n": n, "tags": [] if n % 2 else ["even"], "of": {"kind": "ab"[n % 2]}}


@dataclass
class World:
    """Documents of six chunks each, and the switches of one user."""

    portal: Portal
    ann: User
    ben: User
    conversation_id: UUID
    documents: list[DocumentSummary] = field(default_factory=list)
    owners: list[User] = field(default_factory=list)
    by_default: dict[int, bool] = field(default_factory=dict)
    in_conversation: dict[int, bool] = field(default_factory=dict)
    trashed: set[int] = field(default_factory=set)

    def add(self, owner: User, visibility: Visibility) -> None:
        number, services = len(self.documents), self.portal.services
        document = self.portal.add(
            f"maple {number}", name=f"{number}.txt", owner=owner, visibility=visibility
        )
        new = [NewChunk(f"maple copper {number} {n}", metadata=metadata(n)) for n in range(CHUNKS)]
        chunks.delete_chunks(services, owner, document.job_id)
        chunks.add_chunks(services, owner, document.job_id, new)
        self.documents.append(document)
        self.owners.append(owner)

    def sees(self, user: User, place: int) -> bool:
        if place in self.trashed:
            return False
        is_shared = self.documents[place].visibility is Visibility.SHARED
        return is_shared or user.is_admin or user == self.owners[place]

    def counts(self, user: User, place: int, *, in_conversation: bool) -> bool:
        """Restate the rule for which documents are searched."""
        if not self.sees(user, place):
            return False
        if user != self.ann:
            return True
        if in_conversation and place in self.in_conversation:
            return self.in_conversation[place]
        return self.by_default.get(place, True)

    def change(self, rng: random.Random) -> None:
        """Set one of Ann's switches, or delete or restore a document."""
        services, place = self.portal.services, rng.randrange(len(self.documents))
        document_id, owner = self.documents[place].id, self.owners[place]
        if rng.random() < 0.4:
            if place in self.trashed:
                library.restore_document(services, owner, document_id)
            else:
                library.delete_document(services, owner, document_id)
            self.trashed ^= {place}
        elif self.sees(self.ann, place):
            is_on = rng.random() < 0.5
            if rng.random() < 0.5:
                self.by_default[place] = is_on
                switches.set_switch(services, self.ann, None, document_id, enabled=is_on)
            else:
                self.in_conversation[place] = is_on
                switches.set_switch(
                    services, self.ann, self.conversation_id, document_id, enabled=is_on
                )

    def check(self, client: FlaskClient, rng: random.Random) -> None:
        """Check that exactly the enabled chunks that match the filter are found."""
        user = rng.choice((self.ann, self.ann, self.ben, self.portal.admin))
        in_conversation = user == self.ann and rng.random() < 0.5
        wanted, holds = rng.choice(FILTERS)
        only = rng.choice((None, None, rng.randrange(len(self.documents))))
        expected = {
            f"maple copper {place} {n}"
            for place in range(len(self.documents))
            if self.counts(user, place, in_conversation=in_conversation) and only in {None, place}
            for n in range(CHUNKS)
            if holds(metadata(n))
        }
        body = {
            "top_k": 100,
            "metadata_filter": wanted,
            "job_id": None if only is None else str(self.documents[only].job_id),
            "conversation_id": str(self.conversation_id) if in_conversation else None,
        }
        headers = self.portal.headers(user)
        for kind, name in KINDS.items():
            answer = client.post(
                f"/api/v1/search/{kind}", json={name: "maple copper", **body}, headers=headers
            )
            found = [result["chunk"]["content"] for result in answer.json["data"]["results"]]
            assert len(found) == len(set(found)), kind
            assert set(found) == expected, (kind, wanted)


@pytest.mark.parametrize("plan", [{}, NEVER], ids=["exact", "index"])
def test_filters_never_show_disabled_foreign_or_trashed_documents(
    make_services: Callable[..., Services], portal: Portal, plan: dict[str, float]
) -> None:
    own = Portal(make_services(search={"plan": plan}), portal.admin)
    ann, ben = own.user("ann"), own.user("ben")
    world = World(own, ann, ben, conversations.create(own.services, ann).id)
    for owner in (ann, ben):
        for visibility in (Visibility.SHARED, Visibility.SHARED, Visibility.PRIVATE):
            world.add(owner, visibility)
    client, rng = create_app(own.services).test_client(), random.Random(7)
    for _ in range(STEPS):
        world.change(rng)
        world.check(client, rng)


def test_outdated_count_of_chunks_does_not_weaken_a_filter(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    plan = {"exact_always_chunks": 3, "exact_chunks": 3, "exact_share": 0.0}
    services = make_services(search={"plan": plan})
    document = portal.add("maple", name="one.txt")
    new = [NewChunk(f"maple {n}", metadata=metadata(n)) for n in range(CHUNKS)]
    chunks.add_chunks(services, portal.admin, document.job_id, new)
    with services.database.begin() as session:
        session.execute(text("UPDATE documents SET chunk_count = 1"))
    for kind, name in KINDS.items():
        answer = (
            create_app(services)
            .test_client()
            .post(
                f"/api/v1/search/{kind}",
                json={name: "maple", "metadata_filter": {"n": {"$gte": 1}}},
                headers=portal.headers(),
            )
        )
        found = [result["chunk"]["content"] for result in answer.json["data"]["results"]]
        assert sorted(found) == [f"maple {n}" for n in range(1, CHUNKS)], kind

"""A cached result equals what a search would return: never stale, never another user's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.domain.search import Fusion, SearchMode, SearchOutcome, SearchRequest, Weights
from portal.domain.vector_collections import NewRecord
from portal.errors import NotFound
from portal.services import Services
from portal.services.collections.records import Collections
from portal.services.documents import library, switches
from portal.services.search import dynamic_config, engine
from portal.services.search.cache import SearchCache
from portal.store.redis_store import RedisStore
from tests.conftest import Portal
from tests.factories.servers.redis import redis_program, redis_server
from tests.integration.documents.selection.selection_changes import CHANGES
from tests.integration.documents.selection.selection_world import World
from tests.integration.documents.selection.small_portal import SLOTS, Step

STEPS = 20
EXAMPLES = 4
OFF = {"cache_ttl_s": 0}
QUESTIONS = (
    SearchRequest("maple 合同", top_n=20),
    SearchRequest("violin -glacier", mode=SearchMode.KEYWORD),
    SearchRequest("copper 年假", mode=SearchMode.VECTOR, top_n=3),
    SearchRequest("lanternn", fuzzy=True, weights=Weights(0.2, 0.8)),
)
CONFIG = "change_config"

steps = st.builds(
    Step,
    change=st.sampled_from([*sorted(CHANGES), CONFIG]),
    process=st.integers(0, 1),
    user=st.integers(0, 2),
    slot=st.integers(0, SLOTS - 1),
    seed=st.integers(0, 2**20),
    mode=st.just(SearchMode.HYBRID),
    moves=st.just(False),
    asks=st.integers(0, 2),
    in_conversation=st.booleans(),
    is_narrow=st.just(False),
)


class Counting(SearchCache):
    """Count the hits."""

    hits = 0

    def get(self, key: str) -> SearchOutcome | None:
        found = super().get(key)
        self.hits += found is not None
        return found


def counting(services: Services, redis: RedisStore | None = None) -> Services:
    cache = Counting(redis, services.settings.search)
    return replace(services, search_cache=cache, redis=redis)


def hits(services: Services) -> int:
    assert isinstance(services.search_cache, Counting)
    return services.search_cache.hits


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[RedisStore | None]]:
    """Yield the store of each of two processes: a shared Redis if there is one."""
    if redis_program() is None:
        yield [None, None]
        return
    with redis_server(tmp_path) as server:
        made = [RedisStore(server.url) for _ in range(2)]
        yield list(made)
        for store in made:
            store.close()


def outcome(
    services: Services, user: User, request: SearchRequest
) -> SearchOutcome | type[NotFound]:
    try:
        return engine.search(services, user, request)
    except NotFound:
        return NotFound


def differing(found: object, expected: object) -> list[object]:
    """Return the parts in which two outcomes differ."""
    if not (isinstance(found, SearchOutcome) and isinstance(expected, SearchOutcome)):
        return [found, expected]
    pairs = zip(asdict(found)["hits"], asdict(expected)["hits"], strict=False)
    fields = [
        (place, name, value, other[name])
        for place, (one, other) in enumerate(pairs)
        for name, value in one.items()
        if value != other[name]
    ]
    return [found.query, len(found.hits), len(expected.hits), *fields]


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.timeout(900)
def test_cached_results_equal_fresh_ones_after_any_change(
    make_services: Callable[..., Services], stores: list[RedisStore | None]
) -> None:
    # The first process measures the model's background and stores it shortened; others read that.
    make_services()
    processes = [counting(make_services(), store) for store in stores]
    plain = make_services(search=OFF)
    world = World.of(*processes)

    def ask_all(seed: int) -> None:
        """Search as every user in both processes; the first may have the results cached."""
        for place, user in enumerate(world.users):
            conversation: UUID | None = world.conversations[place] if seed % 2 else None
            for question in QUESTIONS:
                request = replace(question, conversation_id=conversation)
                expected = outcome(plain, user, request)
                for services in processes:
                    found = outcome(services, user, request)
                    assert found == expected, differing(found, expected)

    def change_config(step: Step) -> None:
        rng = random.Random(step.seed)
        values = {
            "fusion": rng.choice(list(Fusion)),
            "semantic_weight": rng.choice((0.1, 0.9)),
            "confidence_threshold": rng.choice((0.2, 0.8)),
            "domain_boost": rng.choice((0.0, 0.3)),
        }
        dynamic_config.change(processes[step.process], world.users[0], values)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # Shrinking would take many more examples, and each is slow.
        phases=(Phase.generate,),
    )
    @given(st.lists(steps, min_size=STEPS, max_size=STEPS))
    def live(life: list[Step]) -> None:
        world.reset()
        for step in life:
            if step.change == CONFIG:
                world.let_go()
                change_config(step)
            else:
                world.apply(step)
            ask_all(step.seed)
        world.let_go()

    live()
    # At least the second process finds each result in the cache.
    assert hits(processes[1]) > STEPS


QUESTION = SearchRequest("how many days of leave")


@pytest.fixture
def kept(make_services: Callable[..., Services]) -> Portal:
    services = counting(make_services())
    portal = Portal.of(services)
    portal.add("Every employee has fifteen days of leave.", name="leave.txt")
    portal.add("The office closes at six.", name="office.txt")
    return portal


def titles(portal: Portal, user: User | None = None, **wishes: object) -> list[str]:
    request = replace(QUESTION, **wishes)  # type: ignore[arg-type]
    hits = engine.search(portal.services, user or portal.admin, request).hits
    return [hit.title for hit in hits]


def test_repeated_query_is_answered_from_the_cache(kept: Portal) -> None:
    assert titles(kept) == titles(kept)
    assert hits(kept.services) == 1


def test_each_relevant_change_invalidates_cached_results(kept: Portal) -> None:
    services, admin = kept.services, kept.admin
    (leave,) = [title for title in titles(kept) if title == "leave"]
    documents = {one.title: one.id for one in library.list_documents(services, admin).items}
    document = documents[leave]

    switches.set_switch(services, admin, None, document, False)
    assert leave not in titles(kept)
    switches.set_switch(services, admin, None, document, True)
    assert leave in titles(kept)
    library.delete_document(services, admin, document)
    assert leave not in titles(kept)
    library.restore_document(services, admin, document)
    assert leave in titles(kept)
    library.change_document(services, admin, document, title="holidays")
    assert "holidays" in titles(kept)
    ann = kept.user("ann")
    assert "holidays" in titles(kept, ann)
    library.change_document(services, admin, document, visibility=Visibility.PRIVATE)
    assert "holidays" not in titles(kept, ann)
    assert "holidays" in titles(kept)
    kept.add("Leave of absence: ten days more.", name="more leave.txt")
    assert "more leave" in titles(kept)
    assert hits(services) == 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE document_chunks SET content = content || ' (changed)'",
        "DELETE FROM chunk_embeddings",
        "DELETE FROM document_chunks WHERE content LIKE '%leave%'",
        "UPDATE document_chunks SET terms = '', analyser_version = 0",
        """INSERT INTO dynamic_config (key, value) VALUES ('confidence_threshold', '0.99')
           ON CONFLICT (key) DO UPDATE SET value = excluded.value""",
    ],
)
def test_changes_of_chunks_and_settings_invalidate_cached_results(
    kept: Portal, change: str
) -> None:
    titles(kept)
    kept.execute(change)
    plain = replace(kept.services, search_cache=SearchCache())
    found = engine.search(kept.services, kept.admin, QUESTION)
    assert found == engine.search(plain, kept.admin, QUESTION)
    assert hits(kept.services) == 0


def test_writes_of_programs_invalidate_cached_results(kept: Portal) -> None:
    """All collections share one keyword index; no document chunk is added, so no count changes."""
    services, request = kept.services, replace(QUESTION, as_shown=True, operators=False)
    programs = Collections(services.database, services.settings.search)
    collection = programs.ensure("notes", "cosine", {}).id
    vector = np.ones(services.embedder.dimensions, np.float32)

    def write(words: str) -> None:
        programs.upsert(collection, [NewRecord("1", words, {}, vector)])

    write("nothing of that kind")
    engine.search(services, kept.admin, request)
    write("many days of leave")
    plain = replace(services, search_cache=SearchCache())
    found = engine.search(services, kept.admin, request)
    assert found == engine.search(plain, kept.admin, request)
    programs.drop(collection)
    engine.search(services, kept.admin, request)
    assert hits(services) == 0


def test_running_ingestion_does_not_lock_the_version(kept: Portal) -> None:
    """Two transactions that write chunks wait for each other only when they commit."""
    insert = text("UPDATE document_chunks SET page = 1 WHERE id = :id")
    database = kept.services.database
    with database.begin() as session:
        one, two = session.scalars(text("SELECT id FROM document_chunks ORDER BY id"))
    with database.begin() as first:
        first.execute(insert, {"id": one})
        with database.begin() as second:
            second.execute(text("SET LOCAL lock_timeout = '2s'"))
            second.execute(insert, {"id": two})
    assert hits(kept.services) == 0


def test_cached_results_are_never_shared_between_users(kept: Portal) -> None:
    kept.add("My own days of leave.", name="mine.txt", visibility=Visibility.PRIVATE)
    assert "mine" in titles(kept)
    assert "mine" not in titles(kept, kept.user("ben"))


def test_explained_search_bypasses_the_cache(kept: Portal) -> None:
    titles(kept, explain=True)
    titles(kept, explain=True)
    assert hits(kept.services) == 0

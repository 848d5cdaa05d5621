from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
import pytest

from bench import corpus as corpora
from bench.corpus import Corpus, PreparedQuestions, loading, profiles, synthesis
from bench.corpus.synthesis import WrittenBlock, make_ids, outline, write_all
from bench.truth import Truth
from portal.domain.search import SearchMode
from portal.embeddings.calibration import Calibration, background
from portal.services import Services
from portal.services.models import catalog
from portal.services.people import accounts

SIZE, SEED = 200, 7


class _Kept:
    """The data that a corpus reads from its files."""

    def __init__(self, arrays: dict[str, object], **made: object) -> None:
        self._arrays = arrays
        self._made = made

    def array(self, name: str) -> object:
        return self._arrays[name]

    def questions(self) -> object:
        return self._made["questions"]

    def profiles(self) -> object:
        return self._made["profiles"]


@pytest.fixture
def corpus(make_services: Callable[..., Services], monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """Yield a small corpus in this test's own database."""
    monkeypatch.setattr(corpora, "_SEED", SEED)
    monkeypatch.setattr(synthesis, "_BLOCK_DOCUMENTS", 15)
    plan = outline(SIZE, SEED, background.load(PreparedQuestions({})))
    services = _with_questions(make_services(), {})
    catalog.refresh_registration(services)
    people = [
        accounts.create_user(services, name=name, password="correct horse battery").id
        for name in ("owner", "keeper")
    ]
    access = loading.Access.draw(plan, owner=people[0], keeper=people[1])
    told: list[str] = []
    write = partial(write_all, plan, processes=1)
    # Interrupt the first call after one block.
    with pytest.raises(InterruptedError):
        loading.load(services, plan, lambda _: _interrupted(write()), access, log=told.append)
    texts = loading.load(services, plan, lambda done: write(done=done), access, log=told.append)
    ids = make_ids(SEED, loading.DOCUMENT_IDS, plan.document_count)
    visible = ~(access.is_private | access.is_deleted)
    questions = tuple(
        corpora.Question(texts[place], plan.questions[place], int(target))
        for place, target in enumerate(plan.targets)
    )
    kept = _Kept(
        {"vectors": plan.vectors, "document_of": plan.document_of},
        questions=questions,
        profiles=tuple(profiles.make(services, ids, visible, seed=SEED)),
    )
    services = _with_questions(services, {question.text: question.vector for question in questions})
    return Corpus(services, SIZE, kept)  # type: ignore[arg-type]


def _interrupted(blocks: Iterator[WrittenBlock]) -> Iterator[WrittenBlock]:
    yield next(blocks)
    raise InterruptedError


def _with_questions(services: Services, vectors: dict[str, np.ndarray]) -> Services:
    embedder = PreparedQuestions(vectors)
    return replace(services, embedder=embedder, calibration=Calibration.for_model(embedder))


def test_stored_corpus_matches_the_plan(corpus: Corpus) -> None:
    with psycopg.connect(corpus.services.database.conninfo) as connection:
        rows = connection.execute(
            """
            SELECT c.id, c.document_id, c.chunk_index, c.char_start, c.char_end, c.content, r.text
              FROM document_chunks c JOIN documents d ON d.current_job_id = c.job_id
              JOIN jobs j ON j.id = c.job_id JOIN document_revisions r ON r.id = j.revision_id
            """
        ).fetchall()
    assert len(rows) == SIZE
    place_of = {id_: place for place, id_ in enumerate(corpus.chunk_ids)}
    for id_, document_id, _, start, end, content, text in rows:
        assert corpus.document_ids[corpus.document_of[place_of[id_]]] == document_id
        assert text[start:end] == content


def test_every_profile_finds_what_brute_force_finds_and_nothing_forbidden(corpus: Corpus) -> None:
    questions = corpus.questions[:8]
    truth = Truth(corpus, questions)
    everything = corpus.profile("100 %").enabled.sum()
    for profile in corpus.profiles:
        allowed = corpus.allowed(profile)
        if not profile.name.endswith(profiles.BY_FOLDERS):
            assert profile.enabled.sum() == max(1, round(everything * profile.percent / 100))
        for question in questions:
            hits = corpus.search(profile, question, mode=SearchMode.VECTOR).hits
            found = truth.places([hit.chunk_id for hit in hits])
            assert allowed[found].all()
            wanted = truth.nearest(question, profile, 10)
            assert len(set(found) & set(wanted)) >= 0.9 * len(wanted)
            hits = corpus.search(profile, question).hits
            found = truth.places([hit.chunk_id for hit in hits])
            assert allowed[found].all()
            wanted = truth.hybrid(question, profile, 10)
            assert len(set(found) & set(wanted)) >= 0.9 * len(wanted)


def test_a_question_that_was_not_prepared_is_an_error() -> None:
    with pytest.raises(KeyError):
        PreparedQuestions({}).embed_query("never prepared")


def test_corpus_is_rebuilt_when_its_inputs_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = outline(50, SEED, background.load(PreparedQuestions({})))
    files = corpora._Files(tmp_path, 50)
    assert not files.is_current(stale_ok=True)
    enabled = np.ones(plan.document_count, bool)
    user = corpora.profile_store.User(id=plan_id(), name="one", is_admin=False)
    profile = profiles.Profile("100 %", 100.0, user, None, enabled)
    texts = {place: f"question {place}" for place in range(len(plan.targets))}
    files.keep(plan, texts, [profile], corpora._fingerprint())
    assert files.is_current(stale_ok=False)
    assert np.array_equal(files.array("vectors"), plan.vectors)
    assert files.profiles()[0].user == user
    assert files.questions()[3].text == "question 3"
    monkeypatch.setattr(corpora, "ANALYSER_VERSION", 10_000)
    assert not files.is_current(stale_ok=False)
    assert files.is_current(stale_ok=True)
    files.forget()
    assert not files.is_current(stale_ok=True)


def plan_id() -> corpora.UUID:
    return make_ids(1, 0, 1)[0]

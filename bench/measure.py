"""Measurements of one corpus: latency, recall, load, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import psycopg

from bench.bare import BM25_SCAN, VECTOR_SCAN, bare_scans
from bench.breakdown import break_down
from bench.clients import clients
from bench.corpus import Corpus, Question
from bench.corpus.profiles import RESULTS, Profile
from bench.over_http import measure_http
from bench.peers import PEERS
from bench.peers.peer import Peer
from bench.timing import Contender, Samples, alternate
from bench.truth import Truth, recall
from portal.domain.search import SearchMode

PORTAL, COLD = "portal", "portal, switched just before"
_BREAKDOWN_QUESTIONS = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements to make, and `seconds` for each contender."""

    percents: tuple[float, ...]
    clients: tuple[int, ...]
    seconds: float
    recall_questions: int
    peers: bool


@dataclass(frozen=True, slots=True)
class _Key:
    """A contender: an engine and the profile it searches under."""

    engine: str
    profile: str = ""


def measure(
    corpus: Corpus, data_dir: Path, plan: Plan, *, log: Callable[[str], None]
) -> dict[str, Any]:
    """Return the figures of one corpus, ready for JSON."""
    profiles = [one for one in corpus.profiles if one.percent in plan.percents]
    defaults = [one for one in profiles if one.is_default]
    with ExitStack() as stack:
        peers: list[Peer] = []
        if plan.peers:
            log("peers: filling them, where that was not done before")
            for open_peer in PEERS:
                peers += stack.enter_context(open_peer(corpus, data_dir))
        log("recall")
        questions = corpus.questions[: plan.recall_questions]
        truth = Truth(corpus, questions)
        rows = [
            _recall_row(corpus, truth, one, questions if one in defaults else questions[::3])
            for one in profiles
        ]
        peer_rows = [_peer_row(peer, profile, questions) for peer in peers for profile in defaults]
        log("latency")
        contenders = _contenders(corpus, profiles, peers, stack)
        samples = alternate(contenders, corpus.questions, seconds=plan.seconds)
        for row in rows:
            row.update(samples[_Key(PORTAL, row["profile"])].as_dict())
            if (cold := samples.get(_Key(COLD, row["profile"]))) is not None:
                row["switched_just_before"] = cold.as_dict()
        for row in peer_rows:
            row.update(samples[_Key(row["engine"], row["profile"])].as_dict())
        log("where the time goes")
        for row, profile in zip(rows, profiles, strict=True):
            asked = corpus.questions[:_BREAKDOWN_QUESTIONS]
            row["breakdown"] = break_down(corpus, profile, asked)
        log("over HTTP")
        over_http = measure_http(corpus, data_dir, defaults[0], seconds=plan.seconds)
        return {
            "documents": len(corpus.document_ids),
            "http": over_http,
            "portal": rows,
            "peers": peer_rows,
            "bare": {name: samples[_Key(name)].as_dict() for name in (VECTOR_SCAN, BM25_SCAN)},
            "ratio_to_bare": _ratios(samples, defaults),
            "load": _load(corpus, data_dir, plan, defaults, log),
        }


def _recall_row(
    corpus: Corpus, truth: Truth, profile: Profile, questions: Sequence[Question]
) -> dict[str, Any]:
    """Return the recall of the vector leg and of hybrid search, and the number of forbidden
    results."""
    allowed = corpus.allowed(profile)
    vector, hybrid, forbidden = [], [], 0
    for question in questions:
        nearest = _places(corpus, truth, profile, question, SearchMode.VECTOR)
        vector.append(recall(nearest, truth.nearest(question, profile, RESULTS)))
        best = _places(corpus, truth, profile, question, SearchMode.HYBRID)
        hybrid.append(recall(best, truth.hybrid(question, profile, RESULTS)))
        forbidden += sum(not allowed[place] for place in (*nearest, *best))
    return {
        "profile": profile.name,
        "percent": profile.percent,
        "in_conversation": profile.conversation_id is not None,
        "documents": int(profile.enabled.sum()),
        "passages": int(allowed.sum()),
        "vector_recall": round(mean(vector), 4),
        "hybrid_recall": round(mean(hybrid), 4),
        "forbidden": forbidden,
    }


def _places(
    corpus: Corpus, truth: Truth, profile: Profile, question: Question, mode: SearchMode
) -> list[int]:
    hits = corpus.search(profile, question, mode=mode).hits
    return truth.places([hit.chunk_id for hit in hits])


def _peer_row(peer: Peer, profile: Profile, questions: Sequence[Question]) -> dict[str, Any]:
    exact = [peer.exact(profile, question) for question in questions]
    found = [peer.search(profile, question) for question in questions]
    return {
        "engine": peer.name,
        "kind": peer.kind,
        "profile": profile.name,
        "percent": profile.percent,
        "recall": round(mean(recall(a, b) for a, b in zip(found, exact, strict=True)), 4),
    }


def _contenders(
    corpus: Corpus, profiles: Sequence[Profile], peers: Sequence[Peer], stack: ExitStack
) -> dict[_Key, Contender]:
    bare = stack.enter_context(bare_scans(corpus))
    contenders = {_Key(name): contender for name, contender in bare.items()}
    switch = stack.enter_context(_switching(corpus))
    for profile in profiles:
        hybrid = partial(corpus.search, profile)
        contenders[_Key(PORTAL, profile.name)] = Contender(hybrid)
        if profile.conversation_id is None:
            before = partial(switch, profile)
            contenders[_Key(COLD, profile.name)] = Contender(hybrid, before=before)
            for peer in peers:
                key = _Key(peer.name, profile.name)
                contenders[key] = Contender(partial(peer.search, profile))
    return contenders


@contextmanager
def _switching(corpus: Corpus) -> Iterator[Callable[[Profile], None]]:
    """Yield a function that flips a user's switch for a document in the trash: it invalidates the
    cached selection without changing the results."""
    hidden = corpus.document_ids[int(corpus.profile("100 %").enabled.argmin())]
    with psycopg.connect(corpus.services.database.conninfo, autocommit=True) as connection:

        def switch(profile: Profile) -> None:
            connection.execute(
                """
                INSERT INTO user_document_defaults AS d (user_id, document_id, enabled)
                VALUES (%s, %s, false)
                ON CONFLICT (user_id, document_id) DO UPDATE SET enabled = NOT d.enabled
                """,
                [profile.user.id, hidden],
            )

        yield switch


def _ratios(samples: dict[_Key, Samples], profiles: Sequence[Profile]) -> dict[str, float]:
    """Return the median of a search over the median of both bare scans in sequence."""
    bare = sum(samples[_Key(name)].median_ms for name in (VECTOR_SCAN, BM25_SCAN))
    return {
        profile.name: round(samples[_Key(PORTAL, profile.name)].median_ms / bare, 2)
        for profile in profiles
    }


def _load(
    corpus: Corpus,
    data_dir: Path,
    plan: Plan,
    profiles: Sequence[Profile],
    log: Callable[[str], None],
) -> list[dict[str, Any]]:
    filtered = tuple(one.name for one in profiles if one.percent < 100)
    groups: dict[str, tuple[str, ...]] = {one.name: (one.name,) for one in profiles}
    if len(filtered) > 1:
        groups["filtered, mixed"] = filtered
    with clients(corpus, data_dir, threads=max(plan.clients)) as pool:
        # Warm up every process on every profile before measuring.
        pool.run(tuple(one.name for one in profiles), clients=max(plan.clients), seconds=1)
        rows = []
        for count in plan.clients:
            log(f"load: {count} clients")
            for name, chosen in groups.items():
                load = pool.run(chosen, clients=count, seconds=plan.seconds)
                rows.append({"profiles": name} | asdict(load))
    return rows

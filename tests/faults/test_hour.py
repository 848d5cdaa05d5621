"""An hour of people at work on the cluster, while one of each of its parts is killed in turn."""

from __future__ import annotations

import contextlib
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from bench.cluster import programs
from bench.cluster.keeping import keep
from bench.cluster.machines import Cluster, Layout
from bench.cluster.nodes import Node
from portal.container import build_services
from portal.services import Services
from portal.services.people import accounts, sessions
from tests.conftest import PASSWORD, make_settings
from tests.factories.servers.endpoint import wait
from tests.faults.conftest import Tally
from tests.faults.people import Person, Refusal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("only_long"),
    pytest.mark.skipif(
        bool(programs.missing()), reason=f"not installed: {' '.join(programs.missing())}"
    ),
]
_PEOPLE = 6
_MAX_PAUSE_S = 2.0
_REST_S = (10.0, 30.0)
_PROMOTE_AFTER_S = 5.0
_BACK_WITHIN_S = 180.0
_ALL_READY_WITHIN_S = 600.0
_PRIMARY = "primary"
_REFUSED = "503 writing_unavailable"
_SERVER = {"fsync": "off", "shared_buffers": "32MB", "max_wal_size": "256MB"}
_SETTINGS = {
    "PORTAL_EMBEDDING__PROVIDER": "hashing",
    "PORTAL_RATE_LIMITS__ENABLED": "false",
    "PORTAL_ADMIN_PASSWORD": PASSWORD,
}
_UNFINISHED = "SELECT count(*) FROM documents WHERE status IN ('queued', 'processing')"
_DOCUMENTS = "SELECT count(*) FROM documents"


@dataclass
class Kill:
    kind: str
    at: float
    back_after_s: float
    requests: int
    """Of all people, until it was back and they had rested."""


@pytest.fixture
def cluster(run_dir: Path) -> Iterator[Cluster]:
    cluster = Cluster(
        run_dir / "hour", Layout.of_free_ports(), environment=_SETTINGS, server_settings=_SERVER
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def services(cluster: Cluster) -> Iterator[Services]:
    """Yield services on the primary, as of a worker."""
    key = cluster.environment("test")["PORTAL_SECRET_KEY"]
    folder = cluster.folder / "test"
    services = build_services(make_settings(folder, cluster.direct_url, secret_key=key))
    yield services
    services.database.dispose()


@pytest.fixture
def kept(cluster: Cluster) -> Iterator[threading.Thread]:
    """Yield the thread that does what `./run cluster` does when something dies."""
    stopping = threading.Event()
    thread = threading.Thread(
        target=keep, args=(cluster, stopping), kwargs={"promote_after_s": _PROMOTE_AFTER_S}
    )
    thread.start()
    yield thread
    stopping.set()
    thread.join()


def test_an_hour_of_kills_loses_nothing_acknowledged_and_costs_a_person_one_retry(
    cluster: Cluster,
    services: Services,
    kept: threading.Thread,
    rng: random.Random,
    minutes: float,
    tally: Tally,
) -> None:
    people = [
        Person(services, cluster.address, number, random.Random(rng.random()),
               max_pause_s=_MAX_PAUSE_S)
        for number in range(_PEOPLE)
    ]  # fmt: skip
    is_back = _watch_of(cluster, services)
    for person in people:
        person.start()
    try:
        wait(lambda: _go_on(people, [3] * _PEOPLE), _BACK_WITHIN_S, "nothing is done")
        kills = list(_kill_in_turn(cluster, people, kept, is_back, rng, minutes * 60))
    finally:
        for person in people:
            person.stopping.set()
        for person in people:
            person.join(_BACK_WITHIN_S)
        if _failures(people):
            _say_errors(cluster)
    _say(people, kills)
    assert _failures(people) == []
    wait(lambda: _count(services, _UNFINISHED) == 0, _ALL_READY_WITHIN_S, "not all is finished")
    for person in people:
        person.check()
    assert _count(services, _DOCUMENTS) == sum(len(person.words) for person in people)
    by_kill = list(_by_kill(people, kills))
    for kill, refusals in by_kill:
        fault = f"{kill.kind} of a cluster killed while people work"
        tally.note(fault, recovery_s=kill.back_after_s, retried=_most_retried(kill, refusals))
    assert [
        (kill.kind, [(one.at - kill.at, one.what, one.reason) for one in of_person])
        for kill, refusals in by_kill
        for of_person in refusals
        if _most_retried(kill, [of_person]) > 1
    ] == []


def _count(services: Services, query: str) -> int:
    with services.database.begin() as session:
        return int(session.execute(text(query)).scalar_one())


def _kill_in_turn(
    cluster: Cluster,
    people: Sequence[Person],
    kept: threading.Thread,
    is_back: Callable[[], bool],
    rng: random.Random,
    seconds: float,
) -> Iterator[Kill]:
    ends_at = time.monotonic() + seconds
    kills: dict[str, Callable[[], None]] = {
        "web process": lambda: rng.choice(cluster.web).kill(),
        "worker": lambda: rng.choice(cluster.workers).kill(),
        "replica": lambda: rng.choice(cluster.replicas).kill(),
        _PRIMARY: lambda: _primary(cluster).kill(),
        "pooler": cluster.pooler.kill,
        "Redis": cluster.redis.kill,
    }
    while time.monotonic() < ends_at:
        for kind in rng.sample(list(kills), len(kills)):
            began, before = time.monotonic(), sum(person.requests for person in people)
            kills[kind]()
            wait(is_back, _BACK_WITHIN_S, f"not back after a kill: {kind}")
            back_after_s = time.monotonic() - began
            done = [person.done for person in people]
            wait(lambda done=done: _go_on(people, done), _BACK_WITHIN_S, "people do not go on")
            rested_at = time.monotonic() + rng.uniform(*_REST_S)
            wait(lambda at=rested_at: time.monotonic() > at or bool(_failures(people)), 60, "rest")
            assert _failures(people) == []
            assert kept.is_alive()
            requests = sum(person.requests for person in people) - before
            print(f"{kind} killed, all back after {back_after_s:.1f} s", flush=True)  # noqa: T201
            yield Kill(kind, began, back_after_s, requests)


def _primary(cluster: Cluster) -> Node:
    primary = cluster.primary
    assert primary is not None
    return primary


def _say_errors(cluster: Cluster) -> None:
    """Print what went wrong inside the web processes: their logs are removed with the cluster."""
    for process in cluster.web:
        log = cluster.folder / f"{process.name}.log"
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            # A connection of a server that died cannot be reset.
            if '"level": "error"' in line and "Exception during reset" not in line:
                print(line, flush=True)  # noqa: T201


def _failures(people: Sequence[Person]) -> list[BaseException]:
    return [person.failure for person in people if person.failure]


def _go_on(people: Sequence[Person], done: Sequence[int]) -> bool:
    """Return whether each has done more than before, or one has failed."""
    is_done = all(one.done > count for one, count in zip(people, done, strict=True))
    return is_done or bool(_failures(people))


def _watch_of(cluster: Cluster, services: Services) -> Callable[[], bool]:
    """Return what says whether all parts work, and each web process reads from all servers."""
    admin = accounts.find_user(services, "admin")
    token = sessions.token_for(services, admin, ttl_s=4 * 3600)
    clients = [
        httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}
        )
        for port in cluster.layout.web
    ]

    def is_back() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return (
                all(process.is_running for process in cluster.processes)
                and all(node.is_running for node in cluster.nodes)
                and all(_is_whole(client, len(cluster.nodes)) for client in clients)
            )
        return False

    return is_back


def _is_whole(client: httpx.Client, servers: int) -> bool:
    body = client.get("/health/vector_store").json()
    states = [one["state"] for one in body.get("replicas", {}).get("states", [])]
    is_well = client.get("/health").json()["status"] == "ok"
    return is_well and bool(body.get("hybrid")) and states == ["ok"] * servers


def _by_kill(
    people: Sequence[Person], kills: Sequence[Kill]
) -> Iterator[tuple[Kill, list[list[Refusal]]]]:
    """Yield what each person was refused from a kill until the next."""
    ends = [*(kill.at for kill in kills[1:]), float("inf")]
    for kill, end in zip(kills, ends, strict=True):
        yield (
            kill,
            [[refusal for refusal in p.refusals if kill.at <= refusal.at < end] for p in people],
        )


def _most_retried(kill: Kill, refusals: Sequence[Sequence[Refusal]]) -> int:
    """Return how many retries one person needed, without writes that a dead primary refused."""
    return max(sum(not _is_refused_write(kill, one) for one in of) for of in refusals)


def _is_refused_write(kill: Kill, refusal: Refusal) -> bool:
    return kill.kind == _PRIMARY and refusal.reason == _REFUSED


def _say(people: Sequence[Person], kills: Sequence[Kill]) -> None:
    lines = [
        "killed | times | requests | retries | of a person | writes refused | until | back after"
    ]
    reasons: Counter[tuple[str, str]] = Counter()
    by_kill = list(_by_kill(people, kills))
    for kind in dict.fromkeys(kill.kind for kill in kills):
        of_kind = [(kill, refusals) for kill, refusals in by_kill if kill.kind == kind]
        all_of = [one for _, refusals in of_kind for of in refusals for one in of]
        refused = [
            one.at - kill.at
            for kill, refusals in of_kind
            for of in refusals
            for one in of
            if _is_refused_write(kill, one)
        ]
        lines.append(
            f"{kind} | {len(of_kind)} | {sum(kill.requests for kill, _ in of_kind)} | "
            f"{len(all_of) - len(refused)} | {max(_most_retried(*one) for one in of_kind)} | "
            f"{len(refused)} | {max(refused, default=0):.1f} s | "
            f"{statistics.median(kill.back_after_s for kill, _ in of_kind):.1f} s"
        )
        reasons.update((kind, f"{one.reason}: {one.what.split('/')[0]}") for one in all_of)
    lines += [f"{count} × {kind}: {reason}" for (kind, reason), count in reasons.most_common()]
    lines.append(
        f"{sum(person.requests for person in people)} requests, "
        f"{sum(person.done for person in people)} actions, "
        f"{sum(len(person.words) for person in people)} uploads, "
        f"{sum(len(person.answers) for person in people)} answers"
    )
    print("\n".join(lines), flush=True)  # noqa: T201

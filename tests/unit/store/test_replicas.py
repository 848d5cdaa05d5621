"""Which server a request reads from, by the latest samples of the servers (ADR 61)."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from portal.errors import DatabaseUnavailable
from portal.store.connections.replicas import Replicas, Sample, WatchedServer

WAIT_S = 0.5


class Server:
    """A server that returns the test's sample, and counts how often it was asked."""

    conninfo = "host=/nowhere"

    def __init__(self, *, position: int, is_replica: bool = True, timeline: int | None = 1) -> None:
        self.says: Sample | None = Sample(0, is_replica, position, timeline, replicates_bm25=False)
        self.asked = self.forgot = 0
        self.grows_by = 0

    def sample(self) -> Sample:
        self.asked += 1
        if self.says is None:
            raise DatabaseUnavailable
        self.says = replace(
            self.says, at=time.monotonic(), position=self.says.position + self.grows_by
        )
        return self.says

    def discard_connections(self) -> None:
        self.forgot += 1


class World:
    """A primary and replicas that have been sampled once, without a watching thread."""

    def __init__(self, *replicas: Server, position: int = 100, outage_s: float = 60.0) -> None:
        self.primary = Server(position=position, is_replica=False)
        self.servers = list(replicas)
        self.replicas = Replicas(self.primary, self.servers, wait_s=WAIT_S, outage_s=outage_s)
        self.replicas._is_watching = True  # Each test decides when a server is sampled.
        self.watched = {id(w.source): w for w in self.replicas._replicas}
        self.look()

    def of(self, server: Server) -> WatchedServer[Server]:
        return self.watched[id(server)]

    def look(self) -> None:
        """Sample each server, as the watch does."""
        self.replicas._primary.note(self.primary.sample())
        for server in self.servers:
            self.of(server).note(server.sample())


def test_replica_that_is_up_to_date_is_read_without_asking_it() -> None:
    replica = Server(position=100)
    world = World(replica)
    asked = replica.asked
    assert world.replicas.choose() is replica
    assert replica.asked == asked


def test_replicas_share_the_requests() -> None:
    world = World(Server(position=100), Server(position=100))
    assert {id(world.replicas.choose()) for _ in range(50)} == set(map(id, world.servers))


def test_read_waits_for_a_recent_write() -> None:
    replica = Server(position=100)
    world = World(replica)
    world.primary.grows_by = 10
    replica.grows_by = 5
    assert world.replicas.choose() is replica
    assert replica.says is not None
    assert replica.says.position >= 110


def test_replica_that_stays_behind_costs_one_wait_until_it_catches_up() -> None:
    replica = Server(position=40)
    world = World(replica)
    assert world.replicas.choose() is None
    asked, began = replica.asked, time.monotonic()
    assert world.replicas.choose() is None
    assert replica.asked == asked
    assert time.monotonic() - began < WAIT_S
    replica.grows_by = 60
    world.look()
    assert world.replicas.choose() is replica


@pytest.mark.parametrize("timeline", [2, None])
def test_replica_on_another_timeline_is_not_read(timeline: int | None) -> None:
    world = World(Server(position=999, timeline=timeline))
    assert world.replicas.choose() is None
    assert world.replicas.states() == [("not_following", 0)]


def test_promoted_replica_is_not_read() -> None:
    promoted = Server(position=100, is_replica=False, timeline=2)
    assert World(promoted).replicas.choose() is None


def test_replica_that_is_promoted_during_the_wait_is_not_read() -> None:
    replica = Server(position=40)
    world = World(replica)
    assert replica.says is not None
    replica.says = replace(replica.says, is_replica=False, position=500)
    assert world.replicas.choose() is None


def test_replica_that_dies_during_the_wait_is_lost_with_its_connections() -> None:
    replica = Server(position=40)
    world = World(replica)
    replica.says = None
    assert world.replicas.choose() is None
    assert world.replicas.states() == [("unavailable", None)]
    world.replicas.mark_lost(replica)
    assert replica.forgot == 1


def test_primary_that_became_a_replica_is_lost() -> None:
    world = World(Server(position=100))
    assert world.primary.says is not None
    world.primary.says = replace(world.primary.says, is_replica=True)
    assert world.replicas.choose() is None
    assert world.replicas.is_primary_lost
    assert world.primary.forgot == 1


def test_unreachable_primary_is_reported_to_the_caller() -> None:
    world = World(Server(position=100))
    world.primary.says = None
    with pytest.raises(DatabaseUnavailable):
        world.replicas.choose()


def test_server_is_lost_only_when_its_answer_is_overdue() -> None:
    watched = World(Server(position=100)).replicas._replicas[0]
    assert watched.latest is not None
    watched.note(replace(watched.latest, at=time.monotonic() - 3600))
    assert not watched.is_lost
    watched._asked_at = time.monotonic() - 0.5
    assert not watched.is_lost
    watched._asked_at = time.monotonic() - 1.5
    assert watched.is_lost


def lost(world: World) -> World:
    world.replicas.mark_lost(world.primary)
    assert world.replicas.is_primary_lost
    return world


def test_no_replica_replaces_a_primary_that_is_reachable() -> None:
    assert World(Server(position=100)).replicas.find_fallback() is None


def test_most_advanced_replica_replaces_a_lost_primary() -> None:
    few, most = Server(position=100), Server(position=120)
    assert lost(World(few, most)).replicas.find_fallback() is most


def test_replica_that_lags_by_more_than_a_second_does_not_replace_the_primary() -> None:
    """It could show something that has been removed: a membership, a document, a token."""
    behind = Server(position=100)
    world = World(behind, position=100)
    history = world.replicas._primary.history
    history.clear()
    now = time.monotonic()
    for age_s, position in ((2.0, 90), (1.3, 110), (0.2, 150)):
        history.append(Sample(now - age_s, False, position, 1, False))
    # Replicas may lack changes of the last second, but no older ones.
    assert lost(world).replicas.find_fallback() is None
    assert behind.says is not None
    world.of(behind).note(replace(behind.says, position=110))
    assert world.replicas.find_fallback() is behind


def test_replica_on_another_timeline_does_not_replace_the_primary() -> None:
    assert lost(World(Server(position=200, timeline=2))).replicas.find_fallback() is None


def test_replica_that_received_nothing_since_the_loss_replaces_the_primary() -> None:
    replica = Server(position=100)
    world = lost(World(replica))
    assert replica.says is not None
    world.of(replica).note(replace(replica.says, timeline=None))
    assert world.replicas.find_fallback() is replica


def test_lost_and_promoted_replicas_do_not_replace_the_primary() -> None:
    dead, promoted = Server(position=100), Server(position=100)
    world = lost(World(dead, promoted))
    world.replicas.mark_lost(dead)
    assert promoted.says is not None
    world.of(promoted).note(replace(promoted.says, is_replica=False))
    assert world.replicas.find_fallback() is None


def test_process_that_never_reached_the_primary_reads_from_no_replica() -> None:
    world = World(Server(position=100))
    world.replicas._primary.history.clear()
    assert lost(world).replicas.find_fallback() is None


def test_reading_without_the_primary_ends_after_the_time_limit() -> None:
    assert lost(World(Server(position=100), outage_s=0)).replicas.find_fallback() is None


def test_primary_that_answers_again_ends_the_outage() -> None:
    world = lost(World(Server(position=100)))
    world.look()
    assert not world.replicas.is_primary_lost
    assert world.replicas.find_fallback() is None
    assert world.replicas.choose() is world.servers[0]


def test_replica_states_report_the_lag_of_each_server() -> None:
    world = World(Server(position=100), Server(position=40))
    # A replica counts as "behind" only after a request has waited for it in vain.
    assert world.replicas.states() == [("ok", 0), ("ok", 60)]
    ahead, behind = world.servers
    world.replicas.mark_lost(ahead)
    assert world.replicas.choose() is None
    assert behind.asked > 1
    assert world.replicas.states() == [("unavailable", None), ("behind", 60)]

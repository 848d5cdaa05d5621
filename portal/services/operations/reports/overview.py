"""The portal at a glance, for administrators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from portal.domain.overview import Bucket, Overview
from portal.domain.people import User, require_admin
from portal.observability import metric_files
from portal.services import Services
from portal.store.operations import overview as overview_store

DAYS = 30
_LATENCY = "portal_search_duration_seconds"
_HITS = "portal_search_result_hits"


def show(services: Services, user: User) -> Overview:
    """Return figures of the last `DAYS` days, and of searches since the start. Administrators
    only."""
    require_admin(user)
    with services.database.read() as session:
        days = overview_store.read_days(session, days=DAYS)
        queue = overview_store.read_queue(session)
    histograms = _histograms(_LATENCY, _HITS)
    return Overview(days, histograms[_LATENCY], histograms[_HITS], queue.waiting, queue.working)


def _histograms(*names: str) -> dict[str, Sequence[Bucket]]:
    """Return the buckets of histograms, of all labels and processes together."""
    sums: dict[str, Counter[float]] = {name: Counter() for name in names}
    for family in metric_files.collector().collect():
        if family.name in sums:
            for sample in family.samples:
                if sample.name.endswith("_bucket"):
                    sums[family.name][float(sample.labels["le"])] += int(sample.value)
    return {name: _split_buckets(up_to) for name, up_to in sums.items()}


def _split_buckets(up_to: Counter[float]) -> Sequence[Bucket]:
    """Convert the cumulative counts of Prometheus to those of each bucket."""
    buckets, before = [], 0
    for limit in sorted(up_to):
        shown = None if limit == float("inf") else limit
        buckets.append(Bucket(shown, up_to[limit] - before))
        before = up_to[limit]
    return buckets

"""A large selection in a few kilobytes, which the statements of both legs carry (ADR 65).

Checking whether a document is enabled takes several joins for each row that an index returns. A bit
of a parameter says the same with one plan for all users and conversations, without joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np

from portal.store.binary_parameters import BinaryParameter, UuidsParameter

MAX_JOBS = 65_536
"""Slots for more jobs would take more than 128 kB per statement."""
_SLOTS_A_JOB = 16
# The server compares a row with each of them.
_MAX_LISTED = 1_000
MAX_CHANGED = 200

RECORD = "uuid_send(job_id) || int4send(uuid_hash(job_id))"
"""SQL for the binary form of the column `job_id`, as `JobSlots.of` reads it."""
_RECORD = np.dtype([("job", "V16"), ("hash", ">i4")])
_UUID_BYTES = 16


@dataclass(frozen=True, eq=False)
class JobSlots:
    """The jobs of enabled documents, among the current jobs of all documents. A slot is a hash of
    job ids, and its bit is 1 if all its jobs are enabled. Enabled jobs that share a slot with
    others are `listed`; `changed` has the job of each document that changed since, and whether it
    is enabled. Without `bits` there were too many."""

    bits: bytes = b""
    listed: frozenset[UUID] = frozenset()
    changed: Mapping[UUID, tuple[UUID, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, counting: bytes, others: bytes) -> JobSlots:
        """Build from enabled jobs and from all others, each as `RECORD`."""
        on, off = (np.frombuffer(jobs, _RECORD) for jobs in (counting, others))
        count = len(on) + len(off)
        if count > MAX_JOBS:
            return cls()
        size = max(8, 1 << (_SLOTS_A_JOB * count - 1).bit_length())
        slots, taken = (jobs["hash"].astype(np.int64) & (size - 1) for jobs in (on, off))
        is_on = np.zeros(size, bool)
        is_on[slots] = True
        is_on[taken] = False
        listed = on["job"][~is_on[slots]].tobytes()
        if len(listed) > _MAX_LISTED * _UUID_BYTES:
            return cls()
        places = range(0, len(listed), _UUID_BYTES)
        ids = frozenset(UUID(bytes=listed[place : place + _UUID_BYTES]) for place in places)
        return cls(np.packbits(is_on, bitorder="little").tobytes(), ids)

    def with_changes(
        self, documents: Mapping[UUID, int], present: Mapping[UUID, tuple[UUID, bool]]
    ) -> JobSlots:
        """Return the slots after documents changed, of which those in `present` have a job."""
        kept = {one: state for one, state in self.changed.items() if one not in documents}
        return replace(self, changed={**kept, **present})

    @cached_property
    def binds(self) -> dict[str, Any]:
        """Return values for the binds of `counting_by_slots`."""
        on = {job for job, counts in self.changed.values() if counts}
        return {
            "slots": BinaryParameter(self.bits),
            "last_slot": 8 * len(self.bits) - 1,
            "jobs_on": UuidsParameter(self.listed | on),
            "jobs_off": UuidsParameter(job for job, counts in self.changed.values() if not counts),
        }

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use."""
        return 2 * len(self.bits) + 200 * (len(self.listed) + len(self.changed))


def counting_by_slots(leg: str, *, has_other_jobs: bool) -> str:
    """Return the condition that the job of a row is enabled. With `has_other_jobs`, some rows are
    of jobs that are not current, such as a running one, which may have any slot."""
    # Without OFFSET the subquery would be joined, or read whole, and cost what this should save.
    is_current = f"""AND EXISTS (
        SELECT FROM documents d
        WHERE d.id = {leg}.document_id AND d.current_job_id = {leg}.job_id
          AND d.collection_id = :collection_id OFFSET 0
    )"""
    return f"""
        WHERE {leg}.job_id <> ALL(CAST(:jobs_off AS uuid[]))
          AND (get_bit(CAST(:slots AS bytea),
                       uuid_hash({leg}.job_id) & CAST(:last_slot AS integer)) <> 0
               OR {leg}.job_id = ANY(CAST(:jobs_on AS uuid[])))
          {is_current if has_other_jobs else ""}
    """

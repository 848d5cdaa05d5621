"""The documents that changed between two versions of a selection, as recorded by triggers.

A set that was collected for one version is brought up to date with these, instead of being
collected again, which takes longer the more documents and switches there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text

from portal.store.binary_parameters import UuidsParameter
from portal.store.search.selection.scope import Scope, Versions
from portal.store.statements import Reader, fetch

_SINCE = text(
    """
    SELECT version_before, version, document_id, chunk_count
    FROM selection_changes
    WHERE owner_id = :owner_id AND position >= (
        SELECT min(position) FROM selection_changes
        WHERE owner_id = :owner_id AND version_before = :version AND version <> :version
    )
    ORDER BY position
    """
)

# The job of an earlier text stays when its chunks are deleted.
_REPLACED = text(
    """
    SELECT EXISTS (
        SELECT FROM documents d JOIN jobs j ON j.document_id = d.id AND j.id <> d.current_job_id
        WHERE d.id = ANY(CAST(:documents AS uuid[]))
    )
    """
)


def documents_since(
    reader: Reader, scope: Scope, before: Versions, now: Versions
) -> dict[UUID, int] | None:
    """Return the documents that changed for a user since `before`, with the most chunks that they
    had or have; None if not all are known."""
    if before.collection_id != now.collection_id:
        return None
    changed: dict[UUID, int] = {}
    for owner_id, old, new in (
        (now.collection_id, before.documents, now.documents),
        (scope.user.id, before.defaults, now.defaults),
        (scope.conversation_id, before.overrides, now.overrides),
    ):
        found = {} if old == new else changes_of(reader, owner_id, old, new)
        if found is None:
            return None
        changed |= {one: max(count, changed.get(one, 0)) for one, count in found.items()}
    return changed


def changes_of(reader: Reader, owner_id: UUID | None, old: int, new: int) -> dict[UUID, int] | None:
    """Return the documents that changed between two versions of a user's or a conversation's
    switches or of a collection, as `documents_since` does."""
    rows = fetch(reader, _SINCE, {"owner_id": owner_id, "version": old})
    if not _are_all(rows, old, new):
        return None
    changed: dict[UUID, int] = {}
    for _, _, document_id, chunk_count in rows:
        changed[document_id] = max(chunk_count, changed.get(document_id, 0))
    return changed


def may_replace_text(reader: Reader, collection_id: UUID, old: int, new: int) -> bool:
    """Return whether the text of a document may have been replaced between two versions of a
    collection, as opposed to published for the first time."""
    changed = changes_of(reader, collection_id, old, new)
    if changed is None:
        return True
    binds = {"documents": UuidsParameter(changed)}
    return bool(changed) and bool(fetch(reader, _REPLACED, binds)[0][0])


def _are_all(rows: Sequence[Any], old: int, new: int) -> bool:
    """Return whether the rows lead from the old version to the new one, with known documents."""
    # If something else made a version, there is a gap.
    reached, passed = old, {old}
    for version_before, version, document_id, _ in rows:
        if document_id is None or reached not in {version_before, version}:
            return False
        reached = version
        passed.add(version)
    return new in passed

"""Facets of a search: the values that documents can be limited to, and how many would be left."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from portal.domain.people import User
from portal.domain.search import FacetCount, Facets
from portal.services import Services
from portal.services.documents import folders
from portal.store.search.filters import facets as facet_store


def count_facets(services: Services, user: User, chosen: Facets) -> list[FacetCount]:
    """Count the documents that the user's searches read, by facet.

    A folder's count includes the folders below it. Folders the user may not see are left out.
    """
    with services.database.read() as session:
        counts = facet_store.count_facets(session, user, chosen)
    direct = {UUID(one.value): one.count for one in counts if one.facet == "folder_id"}
    paths = folders.list_paths(services, user) if direct else []
    within: Counter[tuple[str, ...]] = Counter()
    for path in paths:
        for depth in range(1, len(path.names) + 1):
            within[path.names[:depth]] += direct.get(path.id, 0)
    shown = [
        FacetCount("folder_id", str(path.id), path.words, within[path.names])
        for path in paths
        if within[path.names]
    ]
    return shown + [one for one in counts if one.facet != "folder_id"]

"""Neighbouring chunks, read from the store."""

from __future__ import annotations

from sqlalchemy import text

from portal.store.search.neighbours import Neighbours, neighbours
from portal.text.layout.joining import join_neighbours
from tests.conftest import Portal

PARAGRAPH = "The committee met again and spoke at length about what section {} of the plan says. "


def test_neighbours_are_those_of_the_same_document_and_join_to_its_text(portal: Portal) -> None:
    body = "".join(PARAGRAPH.format(number) for number in range(90))
    document = portal.add(body)
    portal.add("Another document stands apart.", name="other.txt")
    with portal.services.database.begin() as session:
        rows = session.execute(
            text(
                "SELECT id, content FROM document_chunks"
                " ORDER BY document_id = :d DESC, chunk_index"
            ),
            {"d": document.id},
        ).all()
        found = neighbours(session, [row.id for row in rows])
    assert len(rows) > 4
    own, other = rows[:-1], rows[-1]
    assert found[other.id] == Neighbours()
    assert found[own[0].id].before is None
    assert found[own[-1].id].after is None
    for place, row in enumerate(own[1:-1], 1):
        before, after = found[row.id].before, found[row.id].after
        assert before is not None
        assert after is not None
        assert (before.text, after.text) == (own[place - 1].content, own[place + 1].content)
        assert body[before.start : before.end] == before.text
        joined = join_neighbours(before, None, after, wanted_chars=10_000)
        assert joined == before  # The chunks between are missing, so nothing is joined.

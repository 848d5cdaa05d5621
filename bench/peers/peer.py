"""Other search engines over the same chunks, set up as their documentation advises.

They get the same input as the portal's search (vectors and analysed terms, with embedding not
timed) and only the chunks that are visible to everyone. The selection is passed in their own filter
syntax: a list of the enabled documents, prepared beforehand and not timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import psycopg

from bench.corpus import Corpus, Question
from bench.corpus.profiles import SHARES, Profile

LEG_LIMIT = 50


class Peer(Protocol):
    """A search engine with the corpus in it."""

    name: str

    kind: str

    def search(self, profile: Profile, question: Question) -> list[int]:
        """Return the corpus indexes of the ten best chunks, best first."""

    def exact(self, profile: Profile, question: Question) -> list[int]:
        """Return the result of an exact index."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    place: int
    document: int
    content: str
    terms: str


def visible_chunks(corpus: Corpus) -> Iterator[ChunkRow]:
    """Yield the chunks visible to a user without own documents, in the database's order."""
    everyone = corpus.allowed(corpus.profile("100 %"))
    place_of = {id_: place for place, id_ in enumerate(corpus.chunk_ids)}
    with psycopg.connect(corpus.services.database.conninfo) as connection:
        cursor = connection.cursor("passages")
        cursor.itersize = 2000
        cursor.execute("SELECT id, content, terms FROM document_chunks")
        for id_, content, terms in cursor:
            place = place_of[id_]
            if everyone[place]:
                yield ChunkRow(place, int(corpus.document_of[place]), content, terms)


@cache
def enabled_documents(profile: Profile) -> list[int] | None:
    """Return the enabled documents; None if all are, so that no filter is needed."""
    if profile.percent == SHARES[0]:
        return None
    return [int(place) for place in np.flatnonzero(profile.enabled)]


@cache
def operator_filter(profile: Profile) -> dict[str, object] | None:
    """Return the filter of enabled documents for langchain-postgres and Chroma."""
    documents = enabled_documents(profile)
    return None if documents is None else {"document": {"$in": documents}}

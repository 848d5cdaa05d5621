"""Other ways to search the same passages, set up as their own documentation advises.

They get what the portal's search has (the same vectors, the same analysed terms, no time for
embedding) and only the passages that anybody may see. The selection reaches them as the filter
they offer: a list of the documents that are on, made beforehand and not timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import psycopg

from bench.corpus import Corpus, Question
from bench.profiles import SHARES, Profile

RESULTS = 10
LEG_LIMIT = 50


class Peer(Protocol):
    """A search engine with the corpus in it."""

    name: str

    kind: str

    def search(self, profile: Profile, question: Question) -> list[int]:
        """Places of the ten best passages in the corpus, best first."""

    def exact(self, profile: Profile, question: Question) -> list[int]:
        """What it would return if its index were exact."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    place: int
    document: int
    content: str
    terms: str


def visible_chunks(corpus: Corpus) -> Iterator[ChunkRow]:
    """Passages that a person without documents of their own may see, in the corpus's order."""
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
    """Return the documents that are on; None where all are, so that no filter is needed."""
    if profile.percent == SHARES[0]:
        return None
    return [int(place) for place in np.flatnonzero(profile.enabled)]


@cache
def operator_filter(profile: Profile) -> dict[str, object] | None:
    """Return the documents that are on as langchain-postgres and Chroma take them."""
    documents = enabled_documents(profile)
    return None if documents is None else {"document": {"$in": documents}}

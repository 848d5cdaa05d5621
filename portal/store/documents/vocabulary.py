"""The words of the corpus, used to correct misspelt queries.

The table holds the words of every chunk, visible or not. Nothing from it may reach a user unless
`word_counts` found it among the documents that user may see and has enabled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from portal.text.terms.spelling import Word, stored_keys, words_of

TRIGRAM_INDEX = "ix_vocabulary_word_trgm"
_MIN_SIMILARITY = 0.3
# Words that differ more in length need more edits than are corrected.
_MAX_LENGTH_DIFFERENCE = 2


def ensure_trigram_index(connection: Connection) -> bool:
    """Create the index that finds words with several edits; return False if pg_trgm is missing."""
    has_trigrams = text("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
    if connection.execute(has_trigrams).scalar() is None:
        return False
    connection.execute(
        text(
            f"CREATE INDEX IF NOT EXISTS {TRIGRAM_INDEX} ON vocabulary"
            " USING gin (word gin_trgm_ops)"
        )
    )
    return True


def add_words(session: Session, texts: Iterable[str]) -> None:
    """Add the words of chunks that are stored in the same transaction."""
    found: dict[str, Word] = {}
    for chunk in texts:
        found |= words_of(chunk)
    # One array instead of a parameter for each of hundreds of words.
    query = "SELECT word FROM vocabulary WHERE word = ANY(CAST(:words AS text[]))"
    known = set(session.scalars(text(query), {"words": list(found)}))
    # Sorted, so that two workers with words in common cannot deadlock.
    new = [found[word] for word in sorted(found.keys() - known)]
    if not new:
        return
    query = """
        INSERT INTO vocabulary (word, surface, term, keys)
        SELECT word, surface, term, string_to_array(keys, ' ')
        FROM unnest(CAST(:words AS text[]), CAST(:surfaces AS text[]),
                    CAST(:terms AS text[]), CAST(:keys AS text[]))
            AS new (word, surface, term, keys)
        ON CONFLICT DO NOTHING
    """
    binds = {
        "words": [word.word for word in new],
        "surfaces": [word.surface for word in new],
        "terms": [word.term for word in new],
        "keys": [" ".join(stored_keys(word.word)) for word in new],
    }
    session.execute(text(query), binds)


# Common words are found in a sample of chunks: the index has long lists for them, slow to look up.
_DELETE_UNUSED = text(
    """
    WITH common AS MATERIALIZED (
        SELECT DISTINCT term
        FROM (SELECT terms_vector FROM document_chunks LIMIT 2000) sample,
             unnest(tsvector_to_array(sample.terms_vector)) AS term
        WHERE term = ANY(CAST(:terms AS text[]))
    )
    DELETE FROM vocabulary v
    WHERE string_to_array(v.term, ' ') && CAST(:terms AS text[])
      AND NOT EXISTS (SELECT FROM common WHERE common.term = v.term)
      AND NOT EXISTS (
          SELECT FROM document_chunks c WHERE c.terms_vector @@ plainto_tsquery('simple', v.term)
      )
    """
)


def delete_unused(session: Session, terms: Sequence[str]) -> None:
    """Delete words of these terms that are no longer in any chunk: nothing of an erased text
    stays."""
    if not terms:
        return
    session.execute(_DELETE_UNUSED, {"terms": list(terms)})


def find_by_keys(session: Session, keys: Collection[str]) -> list[tuple[str, Word]]:
    """Return words that have one of these keys, each with that key."""
    if not keys:
        return []
    query = """
        SELECT wanted.key, word, surface, term
        FROM unnest(CAST(:keys AS text[])) AS wanted (key)
        JOIN vocabulary ON keys @> ARRAY[wanted.key]
    """
    rows = session.execute(text(query), {"keys": sorted(keys)})
    return [(key, Word(*word)) for key, *word in rows]


def find_similar(session: Session, words: Sequence[str]) -> dict[str, list[Word]]:
    """Return words that share trigrams with each word, most similar first; none without pg_trgm.
    There is no limit: under a limit, words of hidden documents would displace visible ones."""
    if not words or not _prepare_trigrams(session):
        return {}
    query = """
        SELECT typed, near.word, near.surface, near.term
        FROM unnest(CAST(:words AS text[])) AS typed
        CROSS JOIN LATERAL (
            SELECT word, surface, term FROM vocabulary
            WHERE word % typed AND abs(length(word) - length(typed)) <= :difference
            ORDER BY similarity(word, typed) DESC, word
        ) near
    """
    found: dict[str, list[Word]] = {}
    binds = {"words": list(words), "difference": _MAX_LENGTH_DIFFERENCE}
    for typed, *word in session.execute(text(query), binds):
        found.setdefault(typed, []).append(Word(*word))
    return found


def _prepare_trigrams(session: Session) -> bool:
    """Set the similarity threshold for this transaction; return False if there is no index."""
    query = """
        SELECT to_regclass(:name) IS NOT NULL,
               set_config('pg_trgm.similarity_threshold', :min_similarity, true)
    """
    binds = {"name": TRIGRAM_INDEX, "min_similarity": str(_MIN_SIMILARITY)}
    return bool(session.execute(text(query), binds).one()[0])

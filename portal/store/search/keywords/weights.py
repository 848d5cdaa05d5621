"""BM25 weights of words, derived from an index that does not expose them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlalchemy import text

from portal.domain.search.bm25 import ALL_CHUNKS, SHARED_CHUNKS, Bm25Index, Bm25Parameters
from portal.store.search.selection.term_postings import WordWeights
from portal.store.search.selection.visible_corpus import VisibleCorpus
from portal.store.statements import Reader, fetch
from portal.text.terms.analyser import tsquery_or

# A word that is in no text, used to make a text longer.
_FILLER = "zzfiller"


def weigh(
    reader: Reader,
    words: Sequence[str],
    parameters: Bm25Parameters,
    corpus: VisibleCorpus | None,
    weighed: WordWeights,
) -> tuple[dict[str, float], float | None]:
    """Return the weight of each word, and the mean length of a chunk in terms, if known.

    A word that is in no shared chunk is weighted by the number of the user's own private chunks
    that have it.
    """
    index = ALL_CHUNKS if corpus is None else SHARED_CHUNKS
    _ask_weights(reader, words, parameters, index, weighed)
    weights = {word: weight for word in words if (weight := weighed.weights[word])}
    mean_length = weighed.mean_length
    unknown = [word for word in dict.fromkeys(words) if word not in weights]
    if corpus is not None and corpus.private_chunks and unknown:
        counts = _count_private(reader, unknown, corpus)
        weights |= {
            word: inverse_frequency(count, corpus.chunk_count)
            for word, count in counts.items()
            if count
        }
    return weights, mean_length


def inverse_frequency(count: int, chunks: int) -> float:
    """Return the inverse document frequency of a word in `count` of all `chunks`, by the formula of
    pg_textsearch."""
    return math.log1p((max(chunks, count) - count + 0.5) / (count + 0.5))


_PRIVATE_COUNTS = text(
    """
    SELECT wanted.number, (
        SELECT count(*) FROM document_chunks c
        WHERE c.job_id = ANY(CAST(:jobs AS uuid[])) AND c.terms_vector @@ wanted.query
    )
    FROM (
        SELECT number, to_tsquery('simple', query) AS query
        FROM unnest(CAST(:queries AS text[])) WITH ORDINALITY AS given (query, number)
        OFFSET 0
    ) wanted
    """
)


def _count_private(reader: Reader, words: Sequence[str], corpus: VisibleCorpus) -> dict[str, int]:
    """Count the user's own private chunks that have each word."""
    binds = {"jobs": corpus.private_jobs, "queries": [tsquery_or((word,)) for word in words]}
    rows = fetch(reader, _PRIVATE_COUNTS, binds)
    return {words[number - 1]: int(count) for number, count in rows}


_PROBES = {
    index: text(
        f"""
        SELECT probe, -(probe <@> to_bm25query(split_part(probe, ' ', 1), '{index.name}'))
        FROM unnest(CAST(:probes AS text[])) probe
        """
    )
    for index in (ALL_CHUNKS, SHARED_CHUNKS)
}


def _ask_weights(
    reader: Reader,
    words: Sequence[str],
    parameters: Bm25Parameters,
    index: Bm25Index,
    weighed: WordWeights,
) -> None:
    """Add the weights of words that are not known yet, by probing the index."""
    # BM25 scores a chunk by the rarity of each word (its inverse document frequency) and by the
    # chunk's length relative to the mean length of all. pg_textsearch stores both and exposes
    # neither, but it scores any text: the score of a text of one word is that word's rarity times a
    # factor that depends on the mean length alone. A second text, the same word followed by a
    # filler, is one term longer; the ratio of the two scores gives the mean length
    # (`_mean_length`), and with it the rarity. Scores computed here then equal those of the index,
    # to its last digits. A word that is not in the index weighs 0; without any word that is, the
    # mean length stays unknown.
    probes = [word for word in dict.fromkeys(words) if word not in weighed.weights]
    if not probes:
        return
    longer = [] if weighed.mean_length else [f"{probe} {_FILLER}" for probe in probes]
    binds = {"probes": [*probes, *longer]}
    scores: dict[str, float] = dict(fetch(reader, _PROBES[index], binds))
    if weighed.mean_length is None:
        known = next((probe for probe in probes if scores[probe] > 0), None)
        if known is not None:
            ratio = scores[known] / scores[f"{known} {_FILLER}"]
            weighed.mean_length = _mean_length(ratio, parameters)
    # Without a mean length no word is known, and all weigh 0.
    norm = parameters.k1 * (1 - parameters.b + parameters.b / (weighed.mean_length or 1.0))
    weighed.weights |= {
        word: max(0.0, scores[word]) * (1 + norm) / (parameters.k1 + 1) for word in probes
    }


def _mean_length(ratio: float, parameters: Bm25Parameters) -> float:
    """Return the mean length m from the scores of a text of one term, alone and with a filler."""
    # Their ratio is (1 + k1 (1 - b + 2b/m)) / (1 + k1 (1 - b + b/m)), solved for m.
    if parameters.k1 * parameters.b <= 0 or ratio <= 1:
        return 1.0  # Length is ignored.
    per_term = (ratio - 1) * (1 + parameters.k1 * (1 - parameters.b)) / (2 - ratio)
    return parameters.k1 * parameters.b / per_term

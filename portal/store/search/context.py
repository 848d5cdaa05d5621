"""The context of a search, read in one statement before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from portal.store.embedding_models.registry import REGISTERED_COLUMNS, RegisteredModel, registered
from portal.store.search.keywords.index import STATE_COLUMNS, KeywordState, state_of
from portal.store.search.selection.scope import Versions
from portal.store.statements import Reader, fetch_named

_CONTEXT = text(
    f"""
    SELECT {REGISTERED_COLUMNS}, {STATE_COLUMNS},
           collections.id AS collection_id, collections.documents_version,
           collections.corpus_version,
           (SELECT md5(string_agg(CAST(corpus_version AS text), ' ' ORDER BY id))
            FROM collections) AS words_version,
           COALESCE(users.selection_version, 0) AS defaults_version,
           COALESCE(conversations.selection_version, 0) AS overrides_version,
           conversations.id IS NOT NULL AS has_conversation,
           (SELECT jsonb_object_agg(key, value) FROM dynamic_config) AS config
    FROM collections
    LEFT JOIN embedding_models m ON m.id = collections.embedding_model_id
    LEFT JOIN users ON users.id = :user_id
    LEFT JOIN conversations ON conversations.id = :conversation_id
                           AND conversations.user_id = :user_id
                           AND conversations.deleted_at IS NULL
    WHERE collections.name = 'portal'
    """
)


@dataclass(frozen=True, slots=True)
class SearchContext:
    """Everything that a search depends on besides its request. `config` has the stored values of
    `dynamic_config`; `model` is the active one, None before the first is registered;
    `has_conversation` is true if the conversation is the user's own; `versions` are those of the
    user's selection, `corpus_version` that of the chunks, `words_version` that of the chunks of all
    collections, which share one index and so determine the weights of words. Equal contexts give
    equal results for one request of one user: `services.search.cache` relies on it."""

    config: dict[str, Any]
    keywords: KeywordState
    model: RegisteredModel | None
    has_conversation: bool
    versions: Versions
    corpus_version: int
    words_version: str


def read_context(
    reader: Reader, user_id: UUID, conversation_id: UUID | None, *, keyword_backend: str
) -> SearchContext:
    """Read the current context; it must not be reused for another search."""
    binds = {"user_id": user_id, "conversation_id": conversation_id}
    row: Any
    (row,) = fetch_named(reader, _CONTEXT, binds)
    return SearchContext(
        config=row.config or {},
        keywords=state_of(reader, row, wanted=keyword_backend),
        model=None if row.id is None else registered(row),
        has_conversation=row.has_conversation,
        versions=Versions(
            row.collection_id, row.documents_version, row.defaults_version, row.overrides_version
        ),
        corpus_version=row.corpus_version,
        words_version=row.words_version,
    )

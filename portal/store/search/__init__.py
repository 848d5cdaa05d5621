"""SQL of searches, from what a search depends on to the chunks it shows.

- `context`: everything that a search depends on besides its request, read first
- `filters`: conditions of operators, facets and metadata
- `selection`: the documents that are switched on for a user, and caches for small selections
- `queries`: the queries of both legs
- `keywords`: BM25 of words, by an index or in memory
- `legs`: both legs, from a plan to their offers
- `found_chunks`, `neighbours`, `word_counts`: reading the chunks that were found
- `explaining`: why a document was not found; `saved`: searches that users save

Each may import those above it; an import contract enforces that.
"""

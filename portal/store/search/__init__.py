"""SQL of searches, from what a search depends on to the chunks it shows.

- `context`: what a search depends on besides its request, read first
- `filters`: conditions of operators, facets and metadata
- `selection`: what is switched on for a user, and what is cached of small selections
- `queries`: what a search asks of its legs
- `keywords`: BM25 of words, by an index or in memory
- `legs`: both legs, from a plan to their offers
- `found_chunks`, `neighbours`, `word_counts`: what is read of the chunks that were found
- `explaining`: why a document was not found; `saved`: searches that users keep

Each may use what stands above it; an import contract holds that.
"""

"""The documents and chunks that are switched on for a user, and caches for them.

`scope` says where a search looks and under which versions; `changes` are the documents that changed
between two versions; `visible_corpus` is what a user may see; `enabled` is the part of it that is
switched on, which `enabled_sets` caches. For a large selection, `job_slots` has a bit for each
document; for a small one, `row_cache` keeps the chunks' rows: their terms (`term_postings`) and
their vectors (`chunk_vectors`).
"""

"""What is switched on for a user, and what is cached of it.

`scope` says where a search looks and under which versions; `changes` are the documents that changed
between two versions; `visible_corpus` is what a user may see; `enabled` is what is switched on of
it, which `enabled_sets` caches. Of a large selection `job_slots` has a bit for each document; of a
small one `row_cache` keeps the chunks' rows: their terms (`term_postings`) and their vectors
(`chunk_vectors`).
"""

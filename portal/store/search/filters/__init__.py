"""Conditions of a search: operators of the query and options (`narrowing`), metadata of chunks
(`metadata`), and the counts of documents by facet (`facets`)."""

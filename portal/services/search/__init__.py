"""Search: from a query to ranked, explained results.

`engine` runs a search: `planning` makes its plan, `finding` executes it, `results` turns what was
found into hits, and `cache` keeps them. Everything else calls the engine, or is called by it:
`corrections` for misspelt queries, `programs` for the APIs, `explaining` for why a document was not
found.
"""

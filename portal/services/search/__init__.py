"""Search: from a query to ranked, explained results.

`engine` runs a search: `planning` makes its plan, `finding` executes it, `results` makes results of
what was found, and `cache` keeps them. Everything else asks the engine, or is asked by it:
`corrections` of misspelt queries, `programs` for the APIs, `explaining` why a document was not
found.
"""

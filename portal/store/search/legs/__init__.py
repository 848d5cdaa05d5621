"""The vector leg and the keyword leg of a search.

`plans` chooses how each runs, `statements` writes their SQL, `finding` runs both, and `offers` is
what both found. `trace` notes how they ran, for `explain`.
"""

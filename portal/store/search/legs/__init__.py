"""The vector leg and the keyword leg of a search.

`plans` chooses how each runs, `statements` writes their SQL, `finding` runs both, `trace` records
how they ran, for `explain`, and `offers` holds what they found.
"""

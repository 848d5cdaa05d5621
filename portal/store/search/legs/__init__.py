"""The vector leg and the keyword leg of a search.

`plans` chooses how each runs, `statements` writes their SQL, `finding` runs both and notes how they
ran, for `explain`, and `offers` is what both found.
"""

"""The vector leg and the keyword leg of a search.

`plans` chooses how each runs, `statements` writes their SQL, and `offers` runs both.
"""

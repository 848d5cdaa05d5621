"""Chunks by their words.

`index` says which backends the server has, `weights` gives words the weights of its BM25 index,
`candidates` finds the best chunks of a selection with them, and `leg` does so for a search.
"""

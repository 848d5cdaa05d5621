"""Chunks by their words.

`index` says which backends the server has, `weights` gives words the weights of its BM25 index, and
`candidates` finds the best chunks of a selection with them, which `leg` asks for in a search.
"""

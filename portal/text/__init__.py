"""Text processing: terms, sentences, tokens, highlights. Reads only dictionaries of its packages.

`terms.analyser` is the only place where text becomes terms; documents and queries both go
through it.
"""

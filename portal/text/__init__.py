"""Text processing: terms, sentences, tokens, highlights. No I/O.

`analyser` is the only place where text becomes terms; documents and queries both go through it.
"""

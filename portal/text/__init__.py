"""Text processing: terms, sentences, tokens, highlights. Reads only its packages' dictionaries.

`terms.analyser` is the only place where text becomes terms; documents and queries both go
through it.
"""

"""What the portal knows about text: terms, sentences, tokens, highlights. No I/O.

`analyser` is the one place where text becomes terms; documents and queries both go through it.
"""

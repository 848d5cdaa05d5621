"""`portal import-chroma`: collections of a Chroma directory become collections of programs here.

A directory is read from a copy (`snapshot`), page after page (`reading`); records are brought into
the store's own types (`records`) and written in batches (`moving`); `command` tells a person.
"""

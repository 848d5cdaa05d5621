"""Searches of the APIs for programs: of chunks, of documents, and `semantic_search`."""

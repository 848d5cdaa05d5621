"""The texts of documents: their revisions, chunks and layout."""

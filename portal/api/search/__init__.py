"""JSON of search."""

"""Pages of search."""

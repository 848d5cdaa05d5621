"""Documents: upload, indexing, versions, trash and selection."""

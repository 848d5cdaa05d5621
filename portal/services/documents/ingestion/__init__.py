"""From a stored file to searchable chunks, as jobs."""

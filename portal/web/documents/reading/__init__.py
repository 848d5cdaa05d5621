"""Pages of one document: as text or as pages, with its versions."""

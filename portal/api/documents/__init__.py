"""JSON of documents and jobs."""

"""SQL of documents, chunks, jobs and selection."""
